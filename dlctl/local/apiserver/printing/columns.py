"""Columns of built-in kinds in ``kubectl get``; the cells are in ``rows`` and ``pod_rows``."""

from collections.abc import Mapping, Sequence
from typing import Final

from dlctl.local.apiserver.resources import Column


def _columns(*names: str, wide: Sequence[str] = (), age: bool = True) -> tuple[Column, ...]:
    """Return columns; those of ``wide`` show only with ``-o wide``, after the age."""
    shown = [*names, "Age"] if age else list(names)
    narrow = [Column(name, "", _TYPES.get(name, "string")) for name in shown]
    return (*narrow, *(Column(name, "", _TYPES.get(name, "string"), 1) for name in wide))


_TYPES: Final = {"Data": "integer", "Secrets": "integer", "Count": "integer"}
_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
_CREATED: Final = Column("Created At", ".metadata.creationTimestamp", "date")

COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "pods": _columns(
        "Ready",
        "Status",
        "Restarts",
        wide=("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    "services": _columns("Type", "Cluster-IP", "External-IP", "Port(s)", wide=("Selector",)),
    "endpoints": _columns("Endpoints"),
    "events": (
        Column("Last Seen", ""),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", ""),
        Column("Subobject", "", priority=1),
        Column("Source", "", priority=1),
        Column("Message", ".message"),
        Column("First Seen", "", priority=1),
        Column("Count", ".count", priority=1),
        Column("Name", ".metadata.name", priority=1, format="name"),
    ),
    "namespaces": _columns("Status"),
    "nodes": _columns(
        "Status",
        "Roles",
        "Age",
        "Version",
        age=False,
        wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    "configmaps": _columns("Data"),
    "secrets": _columns("Type", "Data"),
    "serviceaccounts": _columns("Secrets"),
    "leases.coordination.k8s.io": _columns("Holder"),
    "persistentvolumeclaims": _columns(
        "Status",
        "Volume",
        "Capacity",
        "Access Modes",
        "StorageClass",
        "VolumeAttributesClass",
        wide=("VolumeMode",),
    ),
    "horizontalpodautoscalers.autoscaling": _columns(
        "Reference", "Targets", "MinPods", "MaxPods", "Replicas"
    ),
    "jobs.batch": _columns(
        "Status", "Completions", "Duration", wide=("Containers", "Images", "Selector")
    ),
    "poddisruptionbudgets.policy": (
        Column("Min Available", ".spec.minAvailable"),
        Column("Max Unavailable", ".spec.maxUnavailable"),
        Column("Allowed Disruptions", ".status.disruptionsAllowed", "integer"),
        _AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        Column("Value", ".value", "integer"),
        Column("Global-Default", ".globalDefault", "boolean"),
        _AGE,
        Column("PreemptionPolicy", ".preemptionPolicy"),
    ),
    "roles.rbac.authorization.k8s.io": (_CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (_CREATED,),
    "rolebindings.rbac.authorization.k8s.io": (Column("Role", ".roleRef.name"), _AGE),
    "clusterrolebindings.rbac.authorization.k8s.io": (Column("Role", ".roleRef.name"), _AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (_CREATED,),
}
