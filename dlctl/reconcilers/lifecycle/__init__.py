"""The rules of a job's life: restarts, deadlines and limits, clean-up, forced deletion. Pure."""
