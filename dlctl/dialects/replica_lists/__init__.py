"""The form of the API groups before Kubeflow v1: a list of replica specs."""
