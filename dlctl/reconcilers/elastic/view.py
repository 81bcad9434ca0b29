"""What decisions about a job's workers are made from. Pure values."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import attrs

from dlctl.api.elastic import LAUNCHER, WORKER, Elasticity, Roster, Scaler, Scaling
from dlctl.api.job import Job, Replica
from dlctl.api.meta import UID
from dlctl.api.pods import Pod
from dlctl.dialects.names import LIMIT
from dlctl.reconcilers.elastic.errands import Errand, Launcher
from dlctl.reconcilers.errands import Outcome
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation
from dlctl.reconcilers.restarts import RestartBackoff

# Statuses are read with indexes of at most this many.
_DIGITS = 9


@attrs.frozen
class ElasticPolicy:
    """What is settled for all jobs that scale; durations in seconds."""

    backoff: RestartBackoff = attrs.field(factory=RestartBackoff)
    # After so long a job starts with as many workers as it needs at least.
    start_after_s: float = 120
    # So long a launcher may go on using workers that a ScaleIn takes away.
    let_go_s: float = 60
    # So long the workers of a ScaleOut have that names no time itself.
    scale_out_s: float = 600


@attrs.frozen
class View:
    """One job, its children, its scalers and what has come of the errands, at one moment."""

    job: Job
    observed: Observed
    roster: Roster
    elasticity: Elasticity
    now: datetime.datetime
    # How many workers the spec asks for, and how many processes each has room for.
    asked: int
    slots: int = 1
    policy: ElasticPolicy = attrs.field(factory=ElasticPolicy)
    # Those not finished, in order of creation, and those that have their result.
    scalers: Sequence[Scaler] = ()
    decided: Sequence[Scaler] = ()
    outcomes: Mapping[Errand, Outcome] = attrs.field(factory=dict)
    # Nodes that are about to go.
    doomed: frozenset[str] = frozenset()
    # The files of a launcher, by path, from the workers to list.
    files: Callable[[Sequence[int]], Mapping[str, str]] = lambda hosts: {}

    @cached_property
    def workers(self) -> Mapping[int, ObservedReplica]:
        return {o.replica.index: o for o in self.observed.replicas if o.replica.type == WORKER}

    @cached_property
    def hosts(self) -> frozenset[int]:
        """Return the workers that the launcher knows: to look one up among many."""
        return frozenset(self.roster.hosts)

    @property
    def dialler(self) -> ObservedReplica | None:
        """Return the launcher, whatever has become of it."""
        return next((o for o in self.observed.replicas if o.replica.type == LAUNCHER), None)

    @property
    def launcher(self) -> Launcher | None:
        """Return where the launcher runs, if it does."""
        one, spec = self.dialler, self.job.spec_of(LAUNCHER)
        if one is None or spec is None or one.pod is None:
            return None
        if one.situation is not Situation.RUNNING:
            return None
        return Launcher(one.pod.key, one.pod.metadata.uid, spec.container)

    @property
    def launched(self) -> bool:
        """Tell whether there is a launcher that has not ended: it may know the workers' names."""
        one = self.dialler
        there = (Situation.PENDING, Situation.RUNNING, Situation.TERMINATING)
        return one is not None and one.situation in there

    @property
    def alive(self) -> tuple[int, ...]:
        """Return the members that have not ended, and whose nodes do not go."""
        fleeing = self.roster.fleeing.workers if self.roster.fleeing else ()
        gone = self.roster.spent.union(fleeing)
        return tuple(i for i in self.roster.members if i not in gone)

    def left_s(self, change: Scaling, limit_s: float) -> float:
        """Return the seconds that a change has left of those that it may take."""
        return (change.since + datetime.timedelta(seconds=limit_s) - self.now).total_seconds()

    def name(self, worker: int) -> str:
        return self.job.child_name(Replica(WORKER, worker))

    def names(self, workers: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.name(worker) for worker in workers)

    @property
    def last_index(self) -> int:
        """Return the highest index with which the name of a worker is not too long."""
        digits = LIMIT - len(self.name(0)) + 1
        return int(10 ** min(digits, _DIGITS)) - 1

    def ready_since(self, worker: int) -> datetime.datetime | None:
        """Return when a worker became ready, if its node says so."""
        one = self.workers.get(worker)
        ready = one.pod.condition("Ready") if one and one.pod else None
        return ready.last_transition_time if ready else None

    def is_ready(self, worker: int) -> bool:
        """Tell whether a worker's pod runs and says that it is ready."""
        one = self.workers.get(worker)
        if one is None or one.pod is None or one.situation is not Situation.RUNNING:
            return False
        ready = one.pod.condition("Ready")
        return ready is not None and ready.status == "True"

    def scaler(self, uid: str) -> Scaler | None:
        return next((one for one in self.scalers if one.uid == UID(uid)), None)

    def is_doomed(self, worker: int) -> bool:
        """Tell whether the node of a worker is about to go."""
        one = self.workers.get(worker)
        return one is not None and one.pod is not None and _node(one.pod) in self.doomed


def _node(pod: Pod) -> str:
    return (pod.spec.node_name if pod.spec else None) or ""
