"""Conditions as Kubeflow's jobs write them, where the order of the list is part of the API.

``kubectl get`` shows the last one, so the most recently set condition is last, except for Waiting.
"""

import datetime
from collections.abc import Sequence
from typing import Final, Self

import attrs

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
# dlctl's own: why replicas do not run. It comes first in the list, never last, so that State
# stays what training-operator shows.
WAITING: Final = "Waiting"


@attrs.frozen
class Condition:
    """One statement about a job, and since when it holds."""

    type: str
    status: bool
    reason: str
    message: str
    last_transition_time: datetime.datetime
    last_update_time: datetime.datetime

    @classmethod
    def at(
        cls, now: datetime.datetime, type_: str, reason: str, message: str, *, status: bool = True
    ) -> Self:
        """Return a condition that is set now."""
        return cls(type_, status, reason, message, last_transition_time=now, last_update_time=now)


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    return next((c for c in conditions if c.type == type_), None)


def is_true(conditions: Sequence[Condition], type_: str) -> bool:
    return any(c.type == type_ and c.status for c in conditions)


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with the new one set; setting an unchanged one changes nothing.

    A Failed job stays Failed. Running and Restarting exclude each other, and both become false when
    a job ends.
    """
    old = find(conditions, new.type)
    if is_true(conditions, FAILED):
        return tuple(conditions)
    if old and (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return tuple(conditions)
    if old and old.status == new.status:
        new = attrs.evolve(new, last_transition_time=old.last_transition_time)
    dropped = {new.type} | ({RUNNING, RESTARTING} if new.type in (RUNNING, RESTARTING) else set())
    kept = [c for c in conditions if c.type not in dropped]
    if new.type in (SUCCEEDED, FAILED):
        kept = [
            # Its times stay, as in training-operator: they show since when the job ran.
            attrs.evolve(c, status=False) if c.type in (RUNNING, RESTARTING) and c.status else c
            for c in kept
        ]
    return (new, *kept) if new.type == WAITING else (*kept, new)


def without_condition(conditions: Sequence[Condition], type_: str) -> tuple[Condition, ...]:
    return tuple(c for c in conditions if c.type != type_)
