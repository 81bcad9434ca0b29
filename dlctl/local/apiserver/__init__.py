"""An API server in memory that keeps the promises of kube-apiserver that clients build on."""
