"""Commands for jobs in any cluster: they need a kubeconfig, and no embedded cluster."""
