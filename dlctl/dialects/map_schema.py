"""The schema of Kubeflow's kinds: what can be checked at admission is."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dlctl.dialects.replica_map import ReplicaMap

JSON = dict[str, Any]
_OPEN: Final = {"x-kubernetes-preserve-unknown-fields": True}


def of_replica_map(dialect: "ReplicaMap") -> JSON:
    return {"type": "object", **_OPEN}


def of_status() -> JSON:
    return {"type": "object", "description": "What the controller last saw.", **_OPEN}
