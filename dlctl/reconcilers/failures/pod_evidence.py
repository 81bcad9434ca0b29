"""Evidence from a pod's status about its end: the API server's and the kubelet's reasons."""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.api.objects.pods import Pod
from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.failures.evidence import Evidence, Proof
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.termination import OUT_OF_PREFIX, exceeded_own_limit

_PREEMPTED: Final = (Cause.PREEMPTION, "preempted by a pod of higher priority")
_SHUT_DOWN: Final = (Cause.NODE, "its node shut down")
_UNOBSERVED: Final = (Cause.NODE, "its end was not observed: its node was down or restarted")
_REJECTED: Final = (Cause.PLATFORM, "its node rejected it")
_NOT_ALLOWED: Final = (Cause.CONFIGURATION, "its node does not allow what its spec asks for")
_NOT_STARTED: Final = (Cause.BAD_COMMAND_OR_IMAGE, "its container could not start")
_NOT_PULLED: Final = (Cause.BAD_COMMAND_OR_IMAGE, "its image cannot be pulled")
# Reasons of the condition DisruptionTarget, of pods, and of containers that ended or wait.
_CAUSE_BY_REASON: Final[Mapping[str, tuple[Cause, str]]] = {
    "PreemptionByScheduler": _PREEMPTED,
    # As Kubernetes 1.25 called it.
    "PreemptionByKubeScheduler": _PREEMPTED,
    "EvictionByEvictionAPI": (Cause.EVICTION, "evicted, for example by a node drain"),
    "DeletionByTaintManager": (Cause.NODE, "deleted because of a taint of its node"),
    "DeletionByPodGC": (Cause.NODE, "deleted because its node is gone"),
    "Deleted": (Cause.PLATFORM, "its pod was deleted"),
    "OOMKilled": (Cause.OUT_OF_MEMORY, "out of memory: the container's limit was reached"),
    "DeadlineExceeded": (Cause.DEADLINE, "the pod's activeDeadlineSeconds have passed"),
    "Evicted": (Cause.EVICTION, "evicted by the kubelet"),
    "Preempting": (Cause.PREEMPTION, "preempted by the kubelet for a critical pod"),
    "Terminated": _SHUT_DOWN,
    "Shutdown": _SHUT_DOWN,
    "NodeShutdown": _SHUT_DOWN,
    "NodeLost": (Cause.NODE, "its node stopped responding"),
    "ContainerStatusUnknown": _UNOBSERVED,
    "Unknown": _UNOBSERVED,
    "NodeAffinity": (Cause.PLATFORM, "its node's labels no longer match"),
    "UnexpectedAdmissionError": (Cause.PLATFORM, "its node rejected it, or lacks its devices"),
    "TopologyAffinityError": (Cause.PLATFORM, "its node could not align its resources"),
    "SMTAlignmentError": (Cause.PLATFORM, "its node could not give it whole cores"),
    "PodOSNotSupported": (Cause.PLATFORM, "its node runs another operating system"),
    "PodOSSelectorNodeLabelDoesNotMatch": _REJECTED,
    "NodeName": _REJECTED,
    "NodePorts": _REJECTED,
    "TaintToleration": _REJECTED,
    "InvalidNodeInfo": _REJECTED,
    "UnexpectedPredicateFailureType": _REJECTED,
    "UnknownReason": _REJECTED,
    "SupplementalGroupsPolicyNotSupported": _REJECTED,
    "AppArmor": _NOT_ALLOWED,
    "SysctlForbidden": _NOT_ALLOWED,
    "InitContainerRestartPolicyForbidden": _NOT_ALLOWED,
    "StartError": _NOT_STARTED,
    "ContainerCannotRun": _NOT_STARTED,
    "RunContainerError": _NOT_STARTED,
    "ErrImagePull": _NOT_PULLED,
    "ImagePullBackOff": _NOT_PULLED,
    "InvalidImageName": (Cause.BAD_COMMAND_OR_IMAGE, "its image name is malformed"),
    "ErrImageNeverPull": (Cause.BAD_COMMAND_OR_IMAGE, "its image is not on the node"),
    "CreateContainerConfigError": (Cause.CONFIGURATION, "its container cannot be configured"),
    "CreateContainerError": (Cause.CONFIGURATION, "its container cannot be created"),
}
# By these, pods make way for somebody who takes their node down, or has removed it.
_SHUTDOWN_REASONS: Final = frozenset({"Terminated", "Shutdown", "NodeShutdown"})
_PLANNED: Final = _SHUTDOWN_REASONS | {"DeletionByTaintManager", "DeletionByPodGC"}


def pod_evidence(failed: FailedReplica, message: str) -> Evidence | None:
    """Return what the pod's and its containers' reasons prove, if anything.

    ``message`` is the container's, which the runtime writes if it could not start.
    """
    found = (_by_reason(*each) for each in _reasons(failed, message))
    return next((evidence for evidence in found if evidence), None)


def reports_shutdown(pod: Pod) -> bool:
    """Return whether the kubelet says that it ended a pod to shut its node down."""
    return pod.status_reason in _SHUTDOWN_REASONS


def _reasons(failed: FailedReplica, message: str) -> Iterator[tuple[str | None, str | None]]:
    disruption = failed.pod.condition("DisruptionTarget")
    if disruption is not None and disruption.status == "True":
        yield disruption.reason, disruption.message
    if status := failed.pod.status:
        yield status.reason, status.message
    if failed.termination is None:
        yield from _waiting(failed.pod)
    else:
        reason = failed.termination.reason
        yield reason, message if _CAUSE_BY_REASON.get(reason) is _NOT_STARTED else None


def _by_reason(reason: str | None, message: str | None) -> Evidence | None:
    if reason and (known := _CAUSE_BY_REASON.get(reason)):
        cause, meaning = known
    elif reason and reason.startswith(OUT_OF_PREFIX):
        resource = reason.removeprefix(OUT_OF_PREFIX)
        cause, meaning = Cause.PLATFORM, f"its node did not have enough {resource}"
    else:
        return None
    if exceeded_own_limit(reason, message):
        cause = Cause.CONFIGURATION
    text = f"{meaning}: {message.strip()}" if message and message.strip() else meaning
    return Evidence(cause, Proof.POD, text, is_planned=reason in _PLANNED)


def _waiting(pod: Pod) -> Iterator[tuple[str | None, str | None]]:
    for each in (*pod.init_container_statuses, *pod.container_statuses):
        waiting = each.state.waiting if each.state else None
        if waiting is not None:
            yield waiting.reason, waiting.message
