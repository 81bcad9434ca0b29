"""An in-memory API server with the guarantees of kube-apiserver that clients rely on."""
