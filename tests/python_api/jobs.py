"""Jobs of one pod that runs a script."""

from typing import Any


def job(name: str, script: str) -> dict[str, Any]:
    """Return a PyTorchJob of one master that runs a script."""
    container = {"name": "pytorch", "image": "any", "command": ["python3", "-uc", script]}
    master = {"restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }
