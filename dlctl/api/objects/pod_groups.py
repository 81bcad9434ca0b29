"""Gangs: replicas that a scheduler starts together or not at all, and their PodGroups."""

from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.defaults import VOLCANO
from dlctl.api.meta import Resource

VOLCANO_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
# Used by the coscheduling plugin, whatever the name of the scheduler that runs it.
COSCHEDULING_POD_GROUPS: Final = Resource(
    "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"
)
# Assigns a pod to a PodGroup of the coscheduling plugin.
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


@attrs.frozen
class SchedulingPolicy:
    """A job's settings of its gang; absent ones derive from its replicas."""

    # How many replicas start together, instead of all.
    min_available: int | None = None
    queue: str = ""
    # The resources that must be free, instead of the sum of the replicas' requests.
    min_resources: Mapping[str, str] = attrs.field(factory=dict)
    priority_class: str = ""
    # Seconds that its pods wait for the rest of the gang.
    schedule_timeout_s: int | None = None


def pod_group_resource(scheduler: str) -> Resource | None:
    """Return the PodGroup resource of a scheduler; None without a gang scheduler."""
    if not scheduler:
        return None
    return VOLCANO_POD_GROUPS if scheduler == VOLCANO else COSCHEDULING_POD_GROUPS
