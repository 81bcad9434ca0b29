"""How kubeflow.org spells jobs: a map of replica types to specs."""
