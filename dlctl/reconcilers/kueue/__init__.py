"""Jobs that Kueue admits: what their Workloads say, their places in its queues, its finalizer."""
