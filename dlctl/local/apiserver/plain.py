"""Built-in resources that are stored as they are sent: nothing defaults, judges or acts on them.

They are served because jobs may name them and an operator may write them.
"""

from dlctl.api.meta import Resource
from dlctl.local.apiserver.changes import JSON
from dlctl.local.apiserver.resources import Column, ResourceRegistry, ServedResource


class PlainStrategy:
    """Takes everything."""

    def admit_create(self, obj: JSON) -> JSON:
        return obj

    def admit_update(self, old: JSON, new: JSON) -> JSON:
        return new

    def admit_status(self, old: JSON, new: JSON) -> JSON:
        return new


def register(registry: ResourceRegistry) -> None:
    """Serve the resources of this module."""
    registry.add(
        ServedResource(
            Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
            "persistentvolumeclaim",
            PlainStrategy(),
            short_names=("pvc",),
            has_status=True,
            columns=(
                Column("Status", ".status.phase"),
                Column("Volume", ".spec.volumeName"),
                Column("Age", ".metadata.creationTimestamp", type="date"),
            ),
        )
    )
    registry.add(
        ServedResource(
            Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
            "horizontalpodautoscaler",
            PlainStrategy(),
            short_names=("hpa",),
            categories=("all",),
            has_status=True,
            columns=(
                Column("Reference", ".spec.scaleTargetRef.name"),
                Column("MinPods", ".spec.minReplicas"),
                Column("MaxPods", ".spec.maxReplicas"),
                Column("Replicas", ".status.currentReplicas"),
                Column("Age", ".metadata.creationTimestamp", type="date"),
            ),
        )
    )
