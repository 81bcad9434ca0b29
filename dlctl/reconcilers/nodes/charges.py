"""Charges against nodes: attempts of jobs that ended by a fault of a node. Pure.

They are derived from the attempts in the statuses of jobs, so that a new leader finds them there.
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.meta import UID, ObjectKey
from dlctl.api.status.verdict import Attempt, Cause, Confidence

CHARGED_CAUSES: Final = frozenset({Cause.NODE, Cause.HARDWARE})
# That many jobs do not charge the same node by coincidence.
MIN_JOBS: Final = 2
# The longest name of a node. Charges are kept in memory, and a status may contain anything.
_MAX_NAME_CHARS: Final = 253


@attrs.frozen
class Charge:
    """One attempt that ended by a fault of its node."""

    node: str
    job: UID
    key: ObjectKey
    cause: Cause
    # Proved by the API, not merely by what the tenant's program has written.
    is_certain: bool
    time: datetime.datetime

    @property
    def scope(self) -> str:
        """Return the namespace whose jobs it counts for; empty for those of all namespaces."""
        return "" if self.is_certain else self.key.namespace


@attrs.frozen
class NodeCharges:
    """The charges against one node that count, the oldest first."""

    node: str
    charges: Sequence[Charge]

    @property
    def jobs(self) -> frozenset[UID]:
        return frozenset(charge.job for charge in self.charges)

    @property
    def causes(self) -> Sequence[Cause]:
        return sorted({charge.cause for charge in self.charges})

    @property
    def last(self) -> datetime.datetime:
        return self.charges[-1].time

    @property
    def is_avoided(self) -> bool:
        """Return whether all jobs avoid the node."""
        return len(self.jobs) >= MIN_JOBS

    @property
    def order(self) -> tuple[int, float, str]:
        """Return a sort key: the most charged first, then the most recently charged."""
        return -len(self.jobs), -self.last.timestamp(), self.node


@attrs.frozen
class ChargeRules:
    """Which charges count, and for whom."""

    now: datetime.datetime
    ttl: datetime.timedelta
    # The namespace of the jobs that avoid nodes; empty for jobs of any namespace.
    namespace: str = ""

    def counted(self, node: str, charges: Iterable[Charge]) -> NodeCharges | None:
        """Return the charges that count against a node; None if there is none."""
        found = sorted(
            (charge for charge in charges if self.counts(charge)), key=lambda charge: charge.time
        )
        return NodeCharges(node, found) if found else None

    def counts(self, charge: Charge) -> bool:
        """Return whether a charge is proved well enough, and has not expired."""
        if charge.scope not in ("", self.namespace):
            return False
        # Clocks differ, but a time far in the future would never expire.
        return abs(self.now - charge.time) < self.ttl


def charges_of(job: UID, key: ObjectKey, attempts: Iterable[Attempt]) -> Iterator[Charge]:
    """Yield the charges of a job: one for each attempt that ended by a fault of a node.

    A node that was shut down, tainted or deleted on purpose has none.
    """
    for attempt in attempts:
        verdict = attempt.verdict
        if verdict is None or verdict.cause not in CHARGED_CAUSES:
            continue
        if verdict.is_planned:
            # Maintenance is no fault, and reaches all nodes in turn.
            continue
        if not 0 < len(verdict.node) <= _MAX_NAME_CHARS:
            continue
        is_certain = verdict.confidence is Confidence.HIGH
        time = attempt.end_time or verdict.time
        yield Charge(verdict.node, job, key, verdict.cause, is_certain, time)
