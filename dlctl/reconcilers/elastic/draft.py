"""What a job's workers need now, while it is being worked out."""

import datetime

import attrs

from dlctl.api.conditions import Condition
from dlctl.api.elastic import Roster, Scaler, ScalerStatus
from dlctl.api.meta import UID
from dlctl.api.pods import Pod
from dlctl.api.status import Restart
from dlctl.reconcilers.elastic.errands import Errand
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.status import Note


@attrs.define
class ScalerChange:
    """What is to be written of a scaler, and what there is to tell of it."""

    scaler: Scaler
    status: ScalerStatus
    note: Note | None = None


@attrs.define
class Draft:
    """Grows from one rule to the next, within one decision."""

    roster: Roster
    now: datetime.datetime
    restarts: dict[str, Restart] = attrs.field(factory=dict)
    # Of the job, in the order in which they are stated.
    conditions: list[Condition] = attrs.field(factory=list)
    notes: list[Note] = attrs.field(factory=list)
    scalers: dict[UID, ScalerChange] = attrs.field(factory=dict)
    deleted: list[Pod] = attrs.field(factory=list)
    wanted: set[Errand] = attrs.field(factory=set)
    # Of those wanted, the ones that are to be done anew.
    again: set[Errand] = attrs.field(factory=set)
    # Whether a launcher may be made.
    launches: bool = False
    # Seconds until time alone makes a difference.
    waits_s: list[float] = attrs.field(factory=list)
    # The roster at first, as it is persisted.
    _before: Roster = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._before = self.roster

    def spend(self, worker: int) -> None:
        self.roster = attrs.evolve(self.roster, spent=self.roster.spent | {worker})

    def enrol(self, *workers: int) -> None:
        members = tuple(sorted({*self.roster.members, *workers}))
        self.roster = attrs.evolve(self.roster, members=members)

    def dismiss(self, *workers: int) -> None:
        members = tuple(i for i in self.roster.members if i not in workers)
        self.roster = attrs.evolve(self.roster, members=members)
        self.list_hosts(*(i for i in self.roster.hosts if i not in workers))

    def list_hosts(self, *workers: int) -> None:
        hosts, before = tuple(sorted(workers)), self._before
        edition = before.edition
        if hosts != before.hosts:
            # The time: a status that has lost its memory must not fall behind the launcher's files.
            edition = max(edition + 1, int(self.now.timestamp()))
        self.roster = attrs.evolve(self.roster, hosts=hosts, edition=edition)

    def beside(self, plan: Plan) -> Plan:
        """Return a plan with what the workers need beside their pods."""
        waits_s = [*self.waits_s, *([] if plan.wake_after_s is None else [plan.wake_after_s])]
        return attrs.evolve(
            plan,
            notes=(*self.notes, *plan.notes),
            deleted_pods=(*plan.deleted_pods, *self.deleted),
            wake_after_s=min(waits_s, default=None),
        )
