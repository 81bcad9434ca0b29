"""The input of decisions about an elastic job's workers. Pure values."""

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from dlctl.api.job import LAUNCHER, WORKER, Job, Replica
from dlctl.api.meta import UID
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.scalers import Scaler
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.membership import MAX_INDEX_DIGITS, Membership, ScaleOperation
from dlctl.backoff import Backoff
from dlctl.controller.background_tasks import TaskOutcome
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF
from dlctl.reconcilers.membership.exec_tasks import ExecTask, LauncherContainer
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState


@attrs.frozen
class MembershipSettings:
    """Settings for all elastic jobs; durations in seconds."""

    backoff: Backoff = RESTART_BACKOFF
    # After this time a job starts with the ready workers, if they reach its minimum.
    start_after_s: float = 120
    # How long a launcher may keep using leaving workers.
    drain_timeout_s: float = 60
    # The timeout of new workers, unless their ScaleOut has its own.
    scale_out_timeout_s: float = 600


@attrs.frozen
class MembershipState:
    """A snapshot of one job, its children, its scalers and the outcomes of its tasks."""

    job: Job
    dialect: ElasticDialect
    observed: Observed
    membership: Membership
    elasticity: Elasticity
    now: datetime.datetime
    # The number of workers in the spec, and the number of processes per worker.
    desired_replicas: int
    slots: int = 1
    settings: MembershipSettings = attrs.field(factory=MembershipSettings)
    # Pending scalers in order of creation, and finished ones.
    scalers: Sequence[Scaler] = ()
    finished_scalers: Sequence[Scaler] = ()
    outcomes: Mapping[ExecTask, TaskOutcome] = attrs.field(factory=dict)
    # Nodes that are about to be removed.
    draining_nodes: Collection[str] = ()
    # Returns the launcher's host files, by path, for the given workers.
    host_files: Callable[[Sequence[int]], Mapping[str, str]] = lambda hosts: {}

    @cached_property
    def workers(self) -> Mapping[int, ObservedReplica]:
        return {o.replica.index: o for o in self.observed.replicas if o.replica.type == WORKER}

    @cached_property
    def hosts(self) -> frozenset[int]:
        """Return the listed workers as a set, for fast look-up."""
        return frozenset(self.membership.hosts)

    @property
    def launcher_replica(self) -> ObservedReplica | None:
        """Return the launcher, in whatever state."""
        return next((o for o in self.observed.replicas if o.replica.type == LAUNCHER), None)

    @property
    def launcher(self) -> LauncherContainer | None:
        """Return the container of a running launcher, or None."""
        one, spec = self.launcher_replica, self.job.replica_spec(LAUNCHER)
        if one is None or spec is None or one.pod is None:
            return None
        if one.state is not ReplicaState.RUNNING:
            return None
        return LauncherContainer(one.pod.key, one.pod.metadata.uid, spec.container)

    @property
    def is_launched(self) -> bool:
        """Return whether there is a launcher that has not ended: it may know the workers' names."""
        one = self.launcher_replica
        active = (ReplicaState.PENDING, ReplicaState.RUNNING, ReplicaState.TERMINATING)
        return one is not None and one.state in active

    @property
    def alive(self) -> tuple[int, ...]:
        """Return the members that have not ended and are not being evacuated."""
        evacuating = self.membership.evacuating.workers if self.membership.evacuating else ()
        gone = self.membership.retired.union(evacuating)
        return tuple(i for i in self.membership.members if i not in gone)

    def left_s(self, change: ScaleOperation, limit_s: float) -> float:
        """Return the seconds until an operation reaches a time limit."""
        return (change.since + datetime.timedelta(seconds=limit_s) - self.now).total_seconds()

    def pod_name(self, worker: int) -> str:
        return self.job.child_name(Replica(WORKER, worker))

    def pod_names(self, workers: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.pod_name(worker) for worker in workers)

    def pod(self, worker: int) -> Pod | None:
        one = self.workers.get(worker)
        return one.pod if one else None

    def pods(self, workers: Iterable[int]) -> tuple[Pod, ...]:
        """Return the existing pods of these workers."""
        return tuple(pod for worker in workers if (pod := self.pod(worker)))

    @property
    def max_index(self) -> int:
        """Return the highest index with which a worker's name is not too long."""
        digits = MAX_LENGTH - len(self.pod_name(0)) + 1
        return int(10 ** min(digits, MAX_INDEX_DIGITS)) - 1

    def ready_since(self, worker: int) -> datetime.datetime | None:
        """Return when a worker became ready, or None."""
        pod = self.pod(worker)
        ready = pod.condition("Ready") if pod else None
        return ready.last_transition_time if ready else None

    def is_ready(self, worker: int) -> bool:
        """Return whether a worker's pod is running and ready."""
        one = self.workers.get(worker)
        return one is not None and one.state is ReplicaState.RUNNING and one.is_ready

    def scaler(self, uid: str) -> Scaler | None:
        return next((one for one in self.scalers if one.uid == UID(uid)), None)

    def on_draining_node(self, worker: int) -> bool:
        """Return whether a worker's node is about to be removed."""
        pod = self.pod(worker)
        return pod is not None and pod.node_name in self.draining_nodes
