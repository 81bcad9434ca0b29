"""What a job's workers need now, while it is being worked out."""

import datetime

import attrs

from dlctl.api.conditions import Condition
from dlctl.api.elastic import Membership, Scaler, ScalerStatus
from dlctl.api.meta import UID
from dlctl.api.pods import Pod
from dlctl.api.status import RestartRecord
from dlctl.reconcilers.job_status import EventNote
from dlctl.reconcilers.membership.exec_tasks import ExecTask


@attrs.define
class ScalerUpdate:
    """What is to be written of a scaler, and what there is to tell of it."""

    scaler: Scaler
    status: ScalerStatus
    note: EventNote | None = None


@attrs.define
class MembershipPlan:
    """Grows from one rule to the next, within one decision."""

    membership: Membership
    now: datetime.datetime
    restarts: dict[str, RestartRecord] = attrs.field(factory=dict)
    # Of the job, in the order in which they are stated.
    conditions: list[Condition] = attrs.field(factory=list)
    notes: list[EventNote] = attrs.field(factory=list)
    scaler_updates: dict[UID, ScalerUpdate] = attrs.field(factory=dict)
    deleted_pods: list[Pod] = attrs.field(factory=list)
    exec_tasks: set[ExecTask] = attrs.field(factory=set)
    # Of those wanted, the ones that are to be done anew.
    retries: set[ExecTask] = attrs.field(factory=set)
    # Whether a launcher may be made.
    create_launcher: bool = False
    # Seconds until time alone makes a difference.
    waits_s: list[float] = attrs.field(factory=list)
    # The roster at first, as it is persisted.
    _initial: Membership = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._initial = self.membership

    def retire(self, worker: int) -> None:
        self.membership = attrs.evolve(self.membership, retired=self.membership.retired | {worker})

    def add(self, *workers: int) -> None:
        members = tuple(sorted({*self.membership.members, *workers}))
        self.membership = attrs.evolve(self.membership, members=members)

    def remove(self, *workers: int) -> None:
        members = tuple(i for i in self.membership.members if i not in workers)
        self.membership = attrs.evolve(self.membership, members=members)
        self.set_hosts(*(i for i in self.membership.hosts if i not in workers))

    def set_hosts(self, *workers: int) -> None:
        hosts, initial = tuple(sorted(workers)), self._initial
        generation = initial.generation
        if hosts != initial.hosts:
            # The time: a status that has lost its memory must not fall behind the launcher's files.
            generation = max(generation + 1, int(self.now.timestamp()))
        self.membership = attrs.evolve(self.membership, hosts=hosts, generation=generation)
