"""The job kinds of Kubeflow's training-operator: one class each, and what they share."""
