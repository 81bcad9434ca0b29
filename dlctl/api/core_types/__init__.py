"""The fields of the Kubernetes types that pods and metrics consist of."""
