"""kubeflow.org's form of jobs: a map of replica types to specs."""
