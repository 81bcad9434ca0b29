"""The controller runtime: worker loop, expectations, background tasks, events. Knows no jobs."""
