"""The runtime of controllers: worker loop, expectations, background tasks, events. Knows no job."""
