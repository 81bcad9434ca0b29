"""How the groups before Kubeflow v1 spell jobs: a list of replica specs."""
