"""The frameworks of Kubeflow's training-operator: one class each, and their common base."""
