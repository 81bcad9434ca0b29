"""The status of a pod as the node reports it: phase, conditions, container states. Pure.

The same records give the same status, so that an unchanged one need not be written.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dlctl.api.json_types import JSON
from dlctl.clock import timestamp
from dlctl.local.node.api_types import NodePod

# Owned by the node; conditions of other types are preserved.
_OWN_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


@attrs.frozen
class ContainerWaiting:
    """Not running yet, or waiting for a restart."""

    reason: str
    message: str = ""


@attrs.frozen
class ContainerRunning:
    """Running since a time."""

    since: datetime.datetime


@attrs.frozen
class ContainerTerminated:
    """Terminated; ``reason`` is Completed, Error or why it could not be started."""

    exit_code: int
    reason: str
    started_at: datetime.datetime
    finished_at: datetime.datetime
    message: str = ""


@attrs.define
class ContainerRecord:
    """The state of one container so far; ``done`` means no further start."""

    name: str
    image: str
    state: ContainerWaiting | ContainerRunning | ContainerTerminated
    last: ContainerTerminated | None = None
    restarts: int = 0
    done: bool = False
    sidecar: bool = False
    # By its startup and readiness probes, in the present run.
    started: bool = True
    passing: bool = True
    # In any run.
    ever_started: bool = False

    @property
    def running(self) -> bool:
        return isinstance(self.state, ContainerRunning)

    @property
    def ready(self) -> bool:
        return self.running and self.started and self.passing

    @property
    def initialized(self) -> bool:
        """Return whether this init container lets the next one start."""
        return self.ever_started if self.sidecar else self.succeeded

    @property
    def succeeded(self) -> bool:
        return (
            self.done and isinstance(self.state, ContainerTerminated) and self.state.exit_code == 0
        )

    @property
    def failed(self) -> bool:
        return self.done and not self.succeeded


@attrs.define
class PodState:
    """The state of a pod as a whole; ``failure_reason`` overrides its containers' outcome."""

    started_at: datetime.datetime
    host_ip: str
    ip: str = ""
    failure_reason: str = ""
    message: str = ""
    # Its network and processes are gone, and their terminations were reported.
    finished: bool = False
    init_containers: list[ContainerRecord] = attrs.field(factory=list)
    containers: list[ContainerRecord] = attrs.field(factory=list)

    @property
    def initialized(self) -> bool:
        return all(record.initialized for record in self.init_containers)

    @property
    def lasting(self) -> list[ContainerRecord]:
        """Return the containers that run until the pod ends."""
        return [*(record for record in self.init_containers if record.sidecar), *self.containers]

    @property
    def ready(self) -> bool:
        return self.initialized and all(record.ready for record in self.lasting)


def phase(pod_state: PodState) -> str:
    """Return the phase; terminal only once nothing of the pod is left, as in kubelets."""
    if pod_state.finished and (outcome := _outcome(pod_state)):
        return outcome
    begun = any(record.running or record.last or record.done for record in pod_state.containers)
    return "Running" if pod_state.initialized and begun else "Pending"


def _outcome(pod_state: PodState) -> str:
    """Return the terminal phase that the pod is heading for; empty while it continues."""
    init = [record for record in pod_state.init_containers if not record.sidecar]
    if pod_state.failure_reason or any(record.failed for record in init):
        return "Failed"
    if not pod_state.initialized or not all(record.done for record in pod_state.containers):
        return ""
    return "Failed" if any(record.failed for record in pod_state.containers) else "Succeeded"


def status(
    pod: NodePod, pod_state: PodState, reported: Sequence[JSON], now: datetime.datetime
) -> JSON:
    """Return the complete status.

    Transition times are taken from the last reported conditions, because the given pod may be
    older; conditions of others come from the pod.
    """
    theirs = (pod.status or {}).get("conditions") or []
    before = [*theirs, *reported]
    wire: JSON = {
        "phase": phase(pod_state),
        "conditions": [
            *_conditions(pod_state, before, now),
            *(condition for condition in theirs if condition.get("type") not in _OWN_CONDITIONS),
        ],
        "hostIP": pod_state.host_ip,
        "startTime": timestamp(pod_state.started_at),
        "qosClass": (pod.status or {}).get("qosClass", "BestEffort"),
        "containerStatuses": [_container(record, pod) for record in pod_state.containers],
    }
    if pod_state.init_containers:
        wire["initContainerStatuses"] = [
            _container(record, pod) for record in pod_state.init_containers
        ]
    if pod_state.ip:
        wire |= {"podIP": pod_state.ip, "podIPs": [{"ip": pod_state.ip}]}
    if pod_state.failure_reason and pod_state.finished:
        wire |= {"reason": pod_state.failure_reason, "message": pod_state.message}
    return wire


@attrs.frozen
class _Unmet:
    """Why a condition is false."""

    reason: str
    message: str = ""


def _conditions(pod_state: PodState, before: Iterable[JSON], now: datetime.datetime) -> list[JSON]:
    ready = _unready(pod_state)
    values = {
        "PodScheduled": None,
        "Initialized": _uninitialized(pod_state),
        "ContainersReady": ready,
        "Ready": ready,
    }
    return _changed(values, before, now)


def _uninitialized(pod_state: PodState) -> _Unmet | None:
    names = [record.name for record in pod_state.init_containers if not record.initialized]
    if not names:
        return None
    message = f"containers with incomplete status: [{' '.join(names)}]"
    return _Unmet("ContainersNotInitialized", message)


def _unready(pod_state: PodState) -> _Unmet | None:
    if outcome := _outcome(pod_state):
        return _Unmet("PodFailed" if outcome == "Failed" else "PodCompleted")
    if pod_state.ready:
        return None
    names = [record.name for record in pod_state.lasting if not record.ready]
    return _Unmet("ContainersNotReady", f"containers with unready status: [{' '.join(names)}]")


def _changed(
    values: Mapping[str, _Unmet | None], before: Iterable[JSON], now: datetime.datetime
) -> list[JSON]:
    known = {condition.get("type"): condition for condition in before}
    conditions = []
    for kind, unmet in values.items():
        wire = {"type": kind, "status": str(unmet is None)}
        old = known.get(kind, {})
        same = old.get("status") == wire["status"]
        since = old.get("lastTransitionTime") if same else None
        wire["lastTransitionTime"] = since or timestamp(now)
        if unmet:
            wire |= {"reason": unmet.reason}
            wire |= {"message": unmet.message} if unmet.message else {}
        conditions.append(wire)
    return conditions


def _container(record: ContainerRecord, pod: NodePod) -> JSON:
    return {
        "name": record.name,
        "image": record.image,
        "imageID": "",
        "containerID": f"dlctl://{pod.metadata.uid}/{record.name}/{record.restarts}",
        "ready": record.ready or (record.succeeded and record.name in _init_names(pod)),
        "started": record.running and record.started,
        "restartCount": record.restarts,
        "state": _state(record.state),
        "lastState": _state(record.last) if record.last else {},
    }


def _init_names(pod: NodePod) -> set[str]:
    return {container.name for container in pod.spec.init_containers or ()}


def _state(state: ContainerWaiting | ContainerRunning | ContainerTerminated) -> JSON:
    if isinstance(state, ContainerWaiting):
        message = {"message": state.message} if state.message else {}
        return {"waiting": {"reason": state.reason, **message}}
    if isinstance(state, ContainerRunning):
        return {"running": {"startedAt": timestamp(state.since)}}
    wire: JSON = {
        "exitCode": state.exit_code,
        "reason": state.reason,
        "startedAt": timestamp(state.started_at),
        "finishedAt": timestamp(state.finished_at),
    }
    if state.message:
        wire["message"] = state.message
    return {"terminated": wire}
