"""Makes the plan of a job from its spec, its status and what is observed. Pure."""
