"""The plan of a job: what it needs now, from its spec, its status and what is observed."""
