"""The state of a pod as its job counts it: active, terminating, succeeded or failed. Pure."""

import datetime
from typing import Any, Final

from dlctl.clock import EPOCH
from dlctl.local.job_controller.controlled_batch_jobs import ControlledBatchJob
from dlctl.local.node.api_types import NodePod

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
_READY: Final = {"type": "Ready", "status": "True"}
_NOT_READY: Final = {"type": "Ready", "status": "False"}


def is_tracked(pod: NodePod) -> bool:
    """Return whether the pod's end has not been counted, or at least not for certain."""
    return FINALIZER in (pod.metadata.finalizers or ())


def phase(pod: NodePod) -> str:
    return str((pod.status or {}).get("phase", ""))


def is_active(pod: NodePod) -> bool:
    return not pod.finished and not pod.metadata.is_terminating


def is_terminating(pod: NodePod) -> bool:
    return not pod.finished and pod.metadata.is_terminating


def is_failed(pod: NodePod, job: ControlledBatchJob) -> bool:
    """Return whether the pod counts as failed; a deleted one may never get to report its phase."""
    if job.replaces_only_failed or phase(pod) == "Succeeded":
        return phase(pod) == "Failed"
    return phase(pod) == "Failed" or pod.metadata.is_terminating


def is_ready(pod: NodePod) -> bool:
    return any(_READY.items() <= each.items() for each in _conditions(pod))


def restarts(pod: NodePod) -> int:
    """Return how often containers of the pod were restarted; 0 once it has ended."""
    if phase(pod) not in ("Pending", "Running"):
        return 0
    status = pod.status or {}
    statuses = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
    return sum(each.get("restartCount", 0) for each in statuses)


def finished_at(pod: NodePod) -> datetime.datetime:
    """Return when the pod ended, or the best estimate."""
    ends = [_ended_at(each) for each in (pod.status or {}).get("containerStatuses") or ()]
    known = [end for end in ends if end is not None]
    if ends and len(known) == len(ends):
        return max(known)
    for condition in _conditions(pod):
        since = condition.get("lastTransitionTime")
        if _NOT_READY.items() <= condition.items() and since:
            return datetime.datetime.fromisoformat(since)
    return pod.metadata.deletion_requested_at or pod.metadata.creation_timestamp or EPOCH


def removal_order(pod: NodePod) -> tuple[bool, bool, bool, float]:
    """Return a key by which the pods that have come the least far are first, the newest ahead."""
    created = pod.metadata.creation_timestamp or EPOCH
    is_running = phase(pod) == "Running"
    return bool(pod.spec.node_name), is_running, is_ready(pod), -created.timestamp()


def _conditions(pod: NodePod) -> list[dict[str, Any]]:
    return (pod.status or {}).get("conditions") or []


def _ended_at(status: dict[str, Any]) -> datetime.datetime | None:
    end = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
    return datetime.datetime.fromisoformat(end) if end else None
