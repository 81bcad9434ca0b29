"""Which key a worker takes next. Knows nothing of Kubernetes."""
