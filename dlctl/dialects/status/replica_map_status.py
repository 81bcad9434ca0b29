"""The status of Kubeflow's jobs, as training-operator writes it: ``replicaStatuses`` is a map.

Everything else is under ``dlctl``, which training-operator's clients ignore. A status without it
was written by another operator.
"""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.dialects.status import index_ranges, own_state_codec
from dlctl.dialects.status import status_codec as codec

_STATE_BY_COUNT_FIELD: Final = {
    "active": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
}


class ReplicaTypeNames(Protocol):
    """A dialect that knows a kind's replica types and their spelling."""

    @property
    def replica_types(self) -> Sequence[str]: ...

    def type_name(self, replica_type: str) -> str: ...


def write(status: JobStatus, types: ReplicaTypeNames) -> JSON:
    """Return the wire form; empty fields are left out."""
    completed_by_type = {
        types.type_name(r.type): index_ranges.write(r.completed_indexes)
        for r in status.replica_statuses
        if r.completed_indexes
    }
    state = {
        **own_state_codec.write(status),
        "version": status.version,
        "completedIndexes": completed_by_type,
    }
    wire: JSON = {
        "conditions": [codec.write_condition(condition) for condition in status.conditions],
        "replicaStatuses": write_replica_statuses(status, types),
        "startTime": codec.write_time(status.start_time),
        # The time of another operator's status may have been derived, and is still to be written.
        "completionTime": codec.write_time(
            None if status.written_by_other_operator else status.completion_time
        ),
        codec.OWN_STATE_FIELD: {}
        if status.written_by_other_operator
        else {name: value for name, value in state.items() if value},
    }
    return {name: value for name, value in wire.items() if value}


def write_replica_statuses(status: JobStatus, types: ReplicaTypeNames) -> JSON:
    """Return ``replicaStatuses`` for v1's types: counts by replica type."""
    return {types.type_name(r.type): _write_replica_status(r) for r in status.replica_statuses}


def read(wire: JSON, types: ReplicaTypeNames) -> JobStatus:
    """Read a decoded status, dlctl's or a former operator's."""
    dlctl_state = codec.mapping(wire.get(codec.OWN_STATE_FIELD))
    found_conditions = codec.read_conditions(wire)
    own_state = own_state_codec.read(dlctl_state)
    phase = own_state.phase if dlctl_state else _inferred_phase(found_conditions)
    return attrs.evolve(
        own_state,
        phase=phase,
        state=_inferred_state(found_conditions, phase),
        replica_statuses=tuple(_read_replica_statuses(wire, dlctl_state, types)),
        conditions=found_conditions,
        start_time=codec.read_time(wire.get("startTime")),
        completion_time=codec.read_time(wire.get("completionTime"))
        or _inferred_completion_time(found_conditions, phase),
        written_by_other_operator=bool(found_conditions) and not dlctl_state,
    )


def _write_replica_status(replica: ReplicaStatus) -> JSON:
    wire: JSON = {
        name: replica.count_by_state[state]
        for name, state in _STATE_BY_COUNT_FIELD.items()
        if replica.count_by_state.get(state)
    }
    return {**wire, "selector": replica.label_selector} if replica.label_selector else wire


def _read_replica_statuses(
    wire: JSON, dlctl_state: JSON, types: ReplicaTypeNames
) -> Iterator[ReplicaStatus]:
    written = codec.mapping(wire.get("replicaStatuses"))
    completed_by_type = codec.mapping(dlctl_state.get("completedIndexes"))
    # In the order of the types, because a JSON object has none.
    for type_ in types.replica_types:
        name = types.type_name(type_)
        if name not in written:
            continue
        replica = codec.mapping(written[name])
        yield ReplicaStatus(
            type=type_,
            state=JobState.UNKNOWN,
            count_by_state={
                state: count
                for field, state in _STATE_BY_COUNT_FIELD.items()
                if (count := codec.number(replica, field))
            },
            completed_indexes=index_ranges.read(codec.text(completed_by_type, name)),
            label_selector=codec.text(replica, "selector"),
        )


def _inferred_phase(found_conditions: tuple[conditions.Condition, ...]) -> JobPhase:
    """Return a job's phase from another operator's conditions."""
    if not found_conditions:
        return JobPhase.NEW
    if any(
        conditions.is_true(found_conditions, end)
        for end in (conditions.SUCCEEDED, conditions.FAILED)
    ):
        return JobPhase.CLEAN_UP
    if conditions.is_true(found_conditions, conditions.SUSPENDED):
        return JobPhase.SUSPENDED
    running = conditions.is_true(found_conditions, conditions.RUNNING)
    return JobPhase.RUNNING if running else JobPhase.CREATING


def _inferred_completion_time(
    found_conditions: tuple[conditions.Condition, ...], phase: JobPhase
) -> datetime.datetime | None:
    """Return when a job ended; training-operator does not record it for all failures."""
    if phase not in (JobPhase.CLEAN_UP, JobPhase.DONE):
        return None
    ends = (conditions.SUCCEEDED, conditions.FAILED)
    return next(
        (c.last_transition_time for c in found_conditions if c.type in ends and c.status), None
    )


def _inferred_state(
    found_conditions: tuple[conditions.Condition, ...], phase: JobPhase
) -> JobState:
    if conditions.is_true(found_conditions, conditions.FAILED):
        return JobState.FAILED
    if conditions.is_true(found_conditions, conditions.SUCCEEDED):
        return JobState.SUCCEEDED
    return JobState.UNKNOWN if phase in (JobPhase.NEW, JobPhase.SUSPENDED) else JobState.RUNNING
