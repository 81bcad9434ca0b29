"""The status of Kubeflow's jobs, as training-operator writes it: ``replicaStatuses`` is a map.

What that cannot hold is dlctl's memory and stands by itself under ``dlctl``, where no client of
training-operator looks. A status without it was written by another operator.
"""

import datetime
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from dlctl.api import conditions
from dlctl.api.status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.dialects import indexes
from dlctl.dialects import status_parts as parts

JSON = dict[str, Any]
_OWN: Final = "dlctl"
_COUNTS: Final = {
    "active": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
}


class Spelt(Protocol):
    """What knows a kind's replica types, and how they are spelt here."""

    @property
    def replica_types(self) -> Sequence[str]: ...

    def spelling(self, replica_type: str) -> str: ...


def write(status: JobStatus, types: Spelt) -> JSON:
    """Return the wire form; what holds nothing is left out."""
    done = {
        types.spelling(r.type): indexes.write(r.completed)
        for r in status.replica_statuses
        if r.completed
    }
    own = {
        "phase": status.phase,
        "observedGeneration": status.observed_generation,
        "completedIndexes": done,
        "restarts": {name: parts.write_restart(r) for name, r in sorted(status.restarts.items())},
        "failure": parts.write_failure(status.failure) if status.failure else None,
        # The reason of a spec that cannot be is what tells whether it was told.
        "reason": status.reason,
    }
    wire: JSON = {
        "conditions": [parts.write_condition(condition) for condition in status.conditions],
        "replicaStatuses": write_counts(status, types),
        "startTime": parts.write_time(status.start_time),
        # That of a foreign status may have been made up for it, and is still to be written.
        "completionTime": parts.write_time(None if status.foreign else status.completion_time),
        _OWN: {} if status.foreign else {name: value for name, value in own.items() if value},
    }
    return {name: value for name, value in wire.items() if value}


def write_counts(status: JobStatus, types: Spelt) -> JSON:
    """Return ``replicaStatuses`` as v1's types decode it: counts by replica type."""
    return {types.spelling(r.type): _write_replica(r) for r in status.replica_statuses}


def read(raw: msgspec.Raw, types: Spelt) -> JobStatus:
    """Read a status back, or the one of an operator that was here before."""
    wire = parts.stored(raw)
    own = parts.mapping(wire.get(_OWN))
    stated = tuple(parts.read_condition(c) for c in parts.mappings(wire, "conditions"))
    phase = parts.member(JobPhase, own.get("phase"), JobPhase.NEW) if own else _phase(stated)
    failure = parts.mapping(own.get("failure"))
    restarts = parts.mapping(own.get("restarts"))
    return JobStatus(
        phase=phase,
        state=_state(stated, phase),
        reason=parts.text(own, "reason"),
        replica_statuses=tuple(_read_replicas(wire, own, types)),
        conditions=stated,
        start_time=parts.read_time(wire.get("startTime")),
        completion_time=parts.read_time(wire.get("completionTime")) or _ended(stated, phase),
        restarts={name: parts.read_restart(parts.mapping(r)) for name, r in restarts.items()},
        failure=parts.read_failure(failure) if failure else None,
        observed_generation=parts.number(own, "observedGeneration") or 0,
        foreign=bool(stated) and not own,
    )


def _write_replica(replica: ReplicaStatus) -> JSON:
    wire: JSON = {
        name: replica.counts[state] for name, state in _COUNTS.items() if replica.counts.get(state)
    }
    return {**wire, "selector": replica.selector} if replica.selector else wire


def _read_replicas(wire: JSON, own: JSON, types: Spelt) -> Iterator[ReplicaStatus]:
    written = parts.mapping(wire.get("replicaStatuses"))
    done = parts.mapping(own.get("completedIndexes"))
    # In the order of the types, because a map on the wire has none.
    for type_ in types.replica_types:
        name = types.spelling(type_)
        if name not in written:
            continue
        replica = parts.mapping(written[name])
        yield ReplicaStatus(
            type=type_,
            state=JobState.UNKNOWN,
            counts={
                state: count
                for field, state in _COUNTS.items()
                if (count := parts.number(replica, field))
            },
            completed=indexes.read(parts.text(done, name)),
            selector=parts.text(replica, "selector"),
        )


def _phase(stated: tuple[conditions.Condition, ...]) -> JobPhase:
    """Return where a job is by the conditions that another operator has left."""
    if not stated:
        return JobPhase.NEW
    if any(conditions.holds(stated, end) for end in (conditions.SUCCEEDED, conditions.FAILED)):
        return JobPhase.CLEAN_UP
    if conditions.holds(stated, conditions.SUSPENDED):
        return JobPhase.SUSPENDED
    running = conditions.holds(stated, conditions.RUNNING)
    return JobPhase.RUNNING if running else JobPhase.CREATING


def _ended(stated: tuple[conditions.Condition, ...], phase: JobPhase) -> datetime.datetime | None:
    """Return since when a job has ended, which training-operator does not say of all failures."""
    if phase not in (JobPhase.CLEAN_UP, JobPhase.DONE):
        return None
    ends = (conditions.SUCCEEDED, conditions.FAILED)
    return next((c.since for c in stated if c.type in ends and c.status), None)


def _state(stated: tuple[conditions.Condition, ...], phase: JobPhase) -> JobState:
    if conditions.holds(stated, conditions.FAILED):
        return JobState.FAILED
    if conditions.holds(stated, conditions.SUCCEEDED):
        return JobState.SUCCEEDED
    return JobState.UNKNOWN if phase in (JobPhase.NEW, JobPhase.SUSPENDED) else JobState.RUNNING
