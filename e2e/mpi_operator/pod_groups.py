"""CRDs of PodGroups that accept whatever an operator writes."""

from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.objects.pod_groups import COSCHEDULING_POD_GROUPS

_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Required for names under k8s.io.
_APPROVAL: Final = {
    "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
}


def crd(resource: Resource) -> JSON:
    """Return the CRD of the PodGroups of a gang scheduler."""
    approved = resource == COSCHEDULING_POD_GROUPS
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": _ANYTHING, "status": _ANYTHING},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.group_resource,
            "annotations": _APPROVAL if approved else {},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "singular": "podgroup", "kind": resource.kind},
            "versions": [version],
        },
    }
