"""The status of a job from what is observed: conditions, counts, completion. Pure."""
