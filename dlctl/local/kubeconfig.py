"""Kubeconfigs of one server, for one bearer token."""

from typing import Final

from dlctl.api.json_types import JSON

_NAME: Final = "dlctl"


def kubeconfig(cluster: JSON, token: str, namespace: str) -> JSON:
    """Return a kubeconfig; ``cluster`` has the address, and the certificate authority if any."""
    context = {"cluster": _NAME, "user": _NAME, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": context}],
        "current-context": _NAME,
    }
