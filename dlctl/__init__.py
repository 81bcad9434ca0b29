"""dlctl: one Kubernetes operator for distributed deep-learning jobs."""
