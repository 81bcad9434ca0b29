"""Objects that make the controller use all its rights concerning scaled jobs."""

from typing import Final

from e2e.kubectl import Kubectl
from e2e.suite import elastic, scaling
from e2e.suite.elastic import JOBS, SCALERS
from e2e.suite.kubeflow_grants import UNSCHEDULABLE

_DELETED_JOB: Final = "goes-elastic"


def submit(kubectl: Kubectl) -> None:
    """Create a job that gets another worker, and one that fails and is deleted within seconds."""
    brief = scaling.job(_DELETED_JOB, launcher=UNSCHEDULABLE, pod=UNSCHEDULABLE)
    brief["spec"].update(activeDeadlineSeconds=1, ttlSecondsAfterFinished=0)
    kubectl.apply(scaling.job(replicas=1), brief)
    elastic.scale(kubectl, "ScaleOut", "more", toAdd={"count": 1})
    elastic.scale(kubectl, "ScaleIn", "typo", toDelete={"podNames": ["nobody"]})


def await_all(kubectl: Kubectl) -> None:
    gone = f"the end of {_DELETED_JOB}"
    kubectl.until(lambda: kubectl.get(JOBS, _DELETED_JOB) is None, within_s=60, what=gone)
    for kind, name, phase in (
        ("ScaleOut", "more", "ScaleSucceeded"),
        ("ScaleIn", "typo", "ScaleFailed"),
    ):
        elastic.until_phase(kubectl, SCALERS[kind], name, phase, within_s=120)


def demanded_by_admission(kubectl: Kubectl) -> set[tuple[str, str, str]]:
    """Return the rights that OwnerReferencesPermissionEnforcement required for scalers' owners."""
    return {
        (elastic.GROUP, resource.partition(".")[0], "delete")
        for resource in SCALERS.values()
        for scaler in kubectl.items(resource)
        if "ownerReferences" in scaler["metadata"]
    }
