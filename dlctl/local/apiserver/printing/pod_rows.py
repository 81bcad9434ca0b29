"""The row of a pod in ``kubectl get pods``: READY, STATUS and RESTARTS as kubectl prints them.

The status is the most specific reason: of the init container that is not done, else of the
containers, else the phase.
"""

import datetime
from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.printing.ages import age_of
from dlctl.local.conditions import is_condition_true

_NONE: Final = "<none>"


@attrs.define
class _Summary:
    """A summary of a pod's container statuses."""

    reason: str
    ready: int = 0
    total: int = 0
    restarts: int = 0
    last_restart: str = ""
    sidecar_restarts: int = 0
    sidecar_last_restart: str = ""


def pod_cells(pod: JSON, now: datetime.datetime) -> JSON:
    """Return the cells of the pod's row by column name."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    summary = _summary(pod)
    restarts = str(summary.restarts)
    if summary.last_restart and summary.restarts:
        restarts = f"{restarts} ({age_of(summary.last_restart, now)} ago)"
    gates = spec.get("readinessGates", [])
    passed = sum(is_condition_true(status, gate.get("conditionType", "")) for gate in gates)
    return {
        "Ready": f"{summary.ready}/{summary.total}",
        "Status": summary.reason,
        "Restarts": restarts,
        "IP": next((ip["ip"] for ip in status.get("podIPs", []) if ip.get("ip")), "")
        or status.get("podIP")
        or _NONE,
        "Node": spec.get("nodeName") or _NONE,
        "Nominated Node": status.get("nominatedNodeName") or _NONE,
        "Readiness Gates": f"{passed}/{len(gates)}" if gates else _NONE,
    }


def pod_conditions(pod: JSON) -> list[JSON]:
    """Return the conditions by which kubectl greys out a finished pod."""
    phase = pod.get("status", {}).get("phase")
    messages = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


def _summary(pod: JSON) -> _Summary:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {
        each["name"]
        for each in spec.get("initContainers", [])
        if each.get("restartPolicy") == "Always"
    }
    summary = _Summary(reason=status.get("reason") or status.get("phase") or "")
    if _is_gated(status):
        summary.reason = "SchedulingGated"
    summary.total = len(spec.get("containers", [])) + len(sidecars)
    initializing = _add_init(summary, pod, sidecars)
    if not initializing or is_condition_true(status, "Initialized"):
        is_ready = is_condition_true(status, "Ready")
        _add_containers(summary, status.get("containerStatuses", []), is_ready)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _add_init(summary: _Summary, pod: JSON, sidecars: set[str]) -> bool:
    """Add the init containers up to one that is not done; return whether there is one."""
    statuses = pod.get("status", {}).get("initContainerStatuses", [])
    total = len(pod.get("spec", {}).get("initContainers", []))
    for index, each in enumerate(statuses):
        _count_restarts(summary, each)
        if each.get("name") in sidecars:
            summary.sidecar_restarts += each.get("restartCount", 0)
            summary.sidecar_last_restart = max(summary.sidecar_last_restart, _ended(each))
        state = each.get("state", {})
        terminated, waiting = state.get("terminated"), state.get("waiting", {})
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            summary.ready += bool(each.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_end(terminated)}"
        elif waiting.get("reason") not in (None, "", "PodInitializing"):
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{total}"
        return True
    return False


def _add_containers(summary: _Summary, statuses: Sequence[JSON], pod_ready: bool) -> None:
    # From here on, only restartable init containers count.
    summary.restarts, summary.last_restart = summary.sidecar_restarts, summary.sidecar_last_restart
    running = False
    for each in reversed(statuses):
        _count_restarts(summary, each)
        state = each.get("state", {})
        if reason := state.get("waiting", {}).get("reason"):
            summary.reason = reason
        elif "terminated" in state:
            summary.reason = _end(state["terminated"])
        elif each.get("ready") and "running" in state:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        summary.reason = "Running" if pod_ready else "NotReady"


def _count_restarts(summary: _Summary, status: JSON) -> None:
    summary.restarts += status.get("restartCount", 0)
    summary.last_restart = max(summary.last_restart, _ended(status))


def _ended(status: JSON) -> str:
    return status.get("lastState", {}).get("terminated", {}).get("finishedAt") or ""


def _end(terminated: JSON) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_gated(status: JSON) -> bool:
    return any(
        each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in status.get("conditions", [])
    )
