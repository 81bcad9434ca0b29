"""Gangs: replicas that a scheduler starts together or not at all, and where it is told of them."""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.defaults import VOLCANO
from dlctl.api.meta import Resource

VOLCANO_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
# Of the coscheduling plugin, by whatever name a scheduler goes that has it.
COSCHEDULING_POD_GROUPS: Final = Resource(
    "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"
)
# By which the coscheduling plugin knows the pods of a PodGroup.
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


@attrs.frozen
class SchedulingPolicy:
    """What a job says of its gang; absent parts follow from its replicas."""

    # So many replicas are started together, instead of all.
    min_available: int | None = None
    queue: str = ""
    # What has to be free for them, by resource, instead of what they request.
    min_resources: Mapping[str, str] = attrs.field(factory=dict)
    priority_class: str = ""
    # Seconds that its pods are held for the rest of the gang.
    schedule_timeout_s: int | None = None


def pod_group_resource(scheduler: str) -> Resource | None:
    """Return where a scheduler is told of gangs; nothing if there is none that asks for it."""
    if not scheduler:
        return None
    return VOLCANO_POD_GROUPS if scheduler == VOLCANO else COSCHEDULING_POD_GROUPS
