"""What it takes to have the controller read Kueue's Workloads: their CRD, without Kueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl

# Each authenticated user may ask which versions of a group are served.
DISCOVERY: Final = {("", "/apis/kueue.x-k8s.io", "get")}
_NAME: Final = "workloads.kueue.x-k8s.io"
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@contextmanager
def workloads_served(cluster: Kubectl) -> Iterator[None]:
    """Serve Workloads for the duration of the block; a controller that starts in it lists them."""
    cluster.apply(_crd())
    try:
        cluster("wait", "crd", _NAME, "--for=condition=Established", "--timeout=60s", within_s=65)
        yield
    finally:
        cluster("delete", "crd", _NAME)


def _crd() -> JSON:
    approval = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue/pull/1"}
    version = {
        "name": "v1beta2",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _ANYTHING},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _NAME, "annotations": approval},
        "spec": {
            "group": "kueue.x-k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "workloads", "singular": "workload", "kind": "Workload"},
            "versions": [version],
        },
    }
