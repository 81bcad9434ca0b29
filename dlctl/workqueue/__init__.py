"""Work queues: the next key for a worker. Knows nothing of Kubernetes."""
