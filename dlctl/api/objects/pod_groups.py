"""PodGroups, by which a scheduler starts the replicas of a job together or not at all."""

from typing import Final

from dlctl.api.meta import Resource

VOLCANO: Final = "volcano"
VOLCANO_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
# Used by the coscheduling plugin, whatever the name of the scheduler that runs it.
COSCHEDULING_POD_GROUPS: Final = Resource(
    "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"
)
# Assigns a pod to a PodGroup of the coscheduling plugin.
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


def pod_group_resource(scheduler: str) -> Resource | None:
    """Return the PodGroup resource of a scheduler; None without a gang scheduler."""
    if not scheduler:
        return None
    return VOLCANO_POD_GROUPS if scheduler == VOLCANO else COSCHEDULING_POD_GROUPS
