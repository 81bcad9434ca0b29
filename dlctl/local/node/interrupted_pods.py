"""Pods whose programs ended with the process of their node. Pure."""

import datetime

from dlctl.api.json_types import JSON
from dlctl.clock import timestamp
from dlctl.local.conditions import with_condition

# As the kubelet says of pods that a shutdown of their node has ended: they are replaced, and their
# end counts as no failure.
_REASON = "Terminated"
_MESSAGE = "The embedded cluster ended while the pod ran."
_EXIT_CODE = 137


def interrupted_pod(pod: JSON, now: datetime.datetime) -> JSON | None:
    """Return the pod as it is after its node has stopped; None if it had not run, or had ended."""
    status = pod.get("status") or {}
    if not (pod.get("spec") or {}).get("nodeName") or status.get("phase") in (
        "Succeeded",
        "Failed",
    ):
        return None
    at = timestamp(now)
    disrupted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": _MESSAGE,
        "lastTransitionTime": at,
    }
    containers = [_ended(each, at) for each in status.get("containerStatuses", ())]
    ended = {
        "phase": "Failed",
        "reason": _REASON,
        "message": _MESSAGE,
        "conditions": [_not_ready(each) for each in with_condition(status, disrupted)],
        **({"containerStatuses": containers} if containers else {}),
    }
    return {**pod, "status": {**status, **ended}}


def _not_ready(condition: JSON) -> JSON:
    if condition["type"] in ("Ready", "ContainersReady"):
        return {**condition, "status": "False"}
    return condition


def _ended(container: JSON, at: str) -> JSON:
    state = container.get("state") or {}
    if "terminated" in state:
        return container
    terminated: JSON = {
        "exitCode": _EXIT_CODE,
        "reason": "ContainerStatusUnknown",
        "message": _MESSAGE,
        "startedAt": (state.get("running") or {}).get("startedAt"),
        "finishedAt": at,
    }
    return {**container, "ready": False, "started": False, "state": {"terminated": terminated}}
