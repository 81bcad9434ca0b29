"""What has become of each replica, read from its pod. Pure: pods come in as values."""

import datetime
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.companions import CompanionObject
from dlctl.api.elastic import WORKER, Roster
from dlctl.api.exitcodes import ExitClass
from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.meta import Resource
from dlctl.api.pods import ContainerStatus, Pod, Service
from dlctl.api.status import Failure, JobPhase
from dlctl.reconcilers.endings import Ending, ending, phase_due_s

_STUCK: Final[Mapping[str, str]] = {
    "CreateContainerConfigError": "its container cannot be configured",
    "CreateContainerError": "its container cannot be created",
    "ErrImageNeverPull": "its image is not on the node and must not be pulled",
    # The two alternate while the kubelet tries; one sentence for both saves a write a try.
    "ErrImagePull": "its image cannot be pulled",
    "ImagePullBackOff": "its image cannot be pulled",
    "InvalidImageName": "its image name is malformed",
    "RunContainerError": "its container cannot be run",
}
_PULLING: Final = frozenset({"ErrImagePull", "ImagePullBackOff"})


class Situation(enum.Enum):
    """What a replica is in."""

    MISSING = enum.auto()
    PENDING = enum.auto()
    RUNNING = enum.auto()
    TERMINATING = enum.auto()
    SUCCEEDED = enum.auto()
    # Ended, and another try may do better.
    LOST = enum.auto()
    # Ended as every other try would end.
    BROKEN = enum.auto()
    # Ended or about to, and nothing takes its place under this name.
    SPENT = enum.auto()


_ENDED: Final[Mapping[ExitClass, Situation]] = {
    ExitClass.SUCCESS: Situation.SUCCEEDED,
    ExitClass.RETRYABLE: Situation.LOST,
    ExitClass.PERMANENT: Situation.BROKEN,
}


@attrs.frozen
class ObservedReplica:
    """One replica and its pod, if it has one."""

    replica: Replica
    situation: Situation
    pod: Pod | None = None
    ending: Ending | None = None
    # The kubelet is about to run the container again in the same pod.
    restarting: bool = False
    # How often the kubelet has restarted its container or an init container in this pod.
    restarts_in_place: int = 0
    # Why it does not start, where waiting alone will not help.
    stuck: str = ""
    # Its containers have terminated; seconds until that is judged without the pod's phase.
    phase_due_s: float = 0.0

    @property
    def failure(self) -> Failure | None:
        """How its pod's end is told, if it is a failure; None while it has not ended."""
        if self.ending is None or self.pod is None:
            return None
        return Failure(
            replica=str(self.replica),
            pod=self.pod.metadata.name,
            reason=self.ending.reason,
            message=self.ending.message,
            time=self.ending.time.replace(microsecond=0),
            exit_code=self.ending.exit_code,
        )


@attrs.frozen
class Observed:
    """All that is known of a job's children."""

    replicas: tuple[ObservedReplica, ...]
    # Pods that nothing in the spec accounts for: left by a scale-down.
    surplus_pods: tuple[Pod, ...] = ()
    services: Mapping[str, Service] = attrs.field(factory=dict)
    companions: Mapping[Resource, Sequence[CompanionObject]] = attrs.field(factory=dict)
    # Children that could not be created a moment ago, and why.
    blocked: Mapping[str, str] = attrs.field(factory=dict)
    # Those of them that wait for more than a name or a quota.
    refused: frozenset[str] = frozenset()

    @property
    def pods(self) -> tuple[Pod, ...]:
        of_replicas = (o.pod for o in self.replicas if o.pod is not None)
        return (*of_replicas, *self.surplus_pods)

    @property
    def present(self) -> frozenset[Replica]:
        """Return the replicas whose pods exist and are not being deleted."""
        there = (o for o in self.replicas if o.pod is not None and not o.pod.metadata.terminating)
        return frozenset(one.replica for one in there)

    @property
    def phase_due_s(self) -> float | None:
        """Return the seconds until the next end is judged without its pod's phase."""
        return min((o.phase_due_s for o in self.replicas if o.phase_due_s), default=None)

    @property
    def situations(self) -> Mapping[Replica, Situation]:
        return {one.replica: one.situation for one in self.replicas}


@attrs.frozen
class Children:
    """A job's children as the stores have them, and those that could not be created just now."""

    pods: Iterable[Pod] = ()
    services: Iterable[Service] = ()
    companions: Mapping[Resource, Sequence[CompanionObject]] = attrs.field(factory=dict)
    blocked: Mapping[str, str] = attrs.field(factory=dict)
    # Those of them that wait for more than a name or a quota.
    refused: frozenset[str] = frozenset()


def observe(job: Job, children: Children, now: datetime.datetime) -> Observed:
    """Tell what each replica is in, and what is left over."""
    by_name = {pod.metadata.name: pod for pod in children.pods}
    roster = job.status.roster or Roster()
    replicas = []
    for spec in job.replica_specs:
        # Of workers that come and go, the next one may have the name of one that is done.
        done = frozenset() if spec.members is not None else job.status.completed(spec.type)
        for index in spec.indexes:
            replica = Replica(spec.type, index)
            pod = by_name.pop(job.child_name(replica), None)
            if spec.type == WORKER and _is_over(roster, index, pod, spec.container):
                end = ending(pod, spec.container, rule=spec.retries, now=now) if pod else None
                replicas.append(ObservedReplica(replica, Situation.SPENT, pod, end))
            elif index in done:
                replicas.append(ObservedReplica(replica, Situation.SUCCEEDED, pod))
            elif pod is None:
                replicas.append(ObservedReplica(replica, Situation.MISSING))
            else:
                replicas.append(_observed(job, spec, replica, pod, now))
    return Observed(
        replicas=tuple(replicas),
        surplus_pods=tuple(by_name.values()),
        services={
            service.metadata.name: service
            for service in children.services
            if not service.metadata.terminating
        },
        companions=children.companions,
        blocked=children.blocked,
        refused=children.refused,
    )


def _is_over(roster: Roster, worker: int, pod: Pod | None, container: str) -> bool:
    """Tell whether no pod is made for a worker any more: it is dead, or was taken away."""
    gone = worker in roster.leaving and (pod is None or pod.is_terminated(container))
    return gone or worker in roster.spent


def _is_void(job: Job, pod: Pod) -> bool:
    """Tell whether a pod was deleted because its job was suspended: what it has done is void."""
    asked, since = pod.metadata.deletion_requested, job.status.start_time
    if asked is None or since is None:
        return False
    return job.status.phase is JobPhase.SUSPENDED or asked < since


def _observed(
    job: Job, spec: ReplicaSpec, replica: Replica, pod: Pod, now: datetime.datetime
) -> ObservedReplica:
    void, status = _is_void(job, pod), pod.container(spec.container)
    restarts = _restart_count(status)
    in_place = 0 if void else restarts + sum(map(_restart_count, pod.init_statuses))
    one = ObservedReplica(replica, Situation.PENDING, pod, restarts_in_place=in_place)
    if not void and (due_s := phase_due_s(pod, spec.container, now)):
        return attrs.evolve(one, phase_due_s=due_s)
    leaving = pod.metadata.terminating
    end = None if void else ending(pod, spec.container, rule=spec.retries, now=now)
    if end and (end.exit_class is not ExitClass.RETRYABLE or not leaving):
        return attrs.evolve(one, situation=_ENDED[end.exit_class], ending=end)
    if leaving:
        return attrs.evolve(one, situation=Situation.TERMINATING)
    state = status.state if status else None
    if state and state.running:
        return attrs.evolve(one, situation=Situation.RUNNING)
    restarting = bool(status and (restarts or _ended_before(status)))
    return attrs.evolve(one, restarting=restarting, stuck=_stuck(pod))


def _restart_count(status: ContainerStatus | None) -> int:
    return (status.restart_count if status else None) or 0


def _ended_before(status: ContainerStatus) -> bool:
    # The kubelet counts a restart when it happens, which is after the first wait for it.
    states = (status.state, status.last_state)
    return any(state is not None and state.terminated is not None for state in states)


def _stuck(pod: Pod) -> str:
    scheduled = pod.condition("PodScheduled")
    if scheduled and scheduled.status == "False" and scheduled.reason == "Unschedulable":
        return f"it cannot be scheduled: {scheduled.message or 'no node fits'}"
    if pod.status is None:
        return ""
    for status in (
        *(pod.status.init_container_statuses or ()),
        *(pod.status.container_statuses or ()),
    ):
        waiting = status.state.waiting if status.state else None
        if waiting and waiting.reason in _STUCK:
            # What a pull says differs from try to try; elsewhere it names what to mend.
            detail = "" if waiting.reason in _PULLING else waiting.message
            return f"{_STUCK[waiting.reason]}: {detail}" if detail else _STUCK[waiting.reason]
    return ""
