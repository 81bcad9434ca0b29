"""The controller of batch/v1 Jobs: runs their pods to completion, as Kubernetes does."""
