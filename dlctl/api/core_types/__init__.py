"""The fields of Kubernetes types that pods and metrics are made of."""
