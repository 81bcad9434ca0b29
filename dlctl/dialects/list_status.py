"""The status of the list dialects: mx-operator's words, and beside them what they lacked.

``phase``, ``state``, ``reason`` and ``replicaStatuses`` are spelt as those systems spell them.
Added are conditions, times, the restarts of each replica and the first cause of a failure.
"""

from typing import Any

import msgspec

from dlctl.api.status import JobPhase, JobState, JobStatus, ReplicaStatus
from dlctl.dialects import indexes
from dlctl.dialects import status_parts as parts

JSON = dict[str, Any]


def write(status: JobStatus, tag: str) -> JSON:
    """Return the wire form; fields that hold nothing are left out, but the four old ones."""
    wire: JSON = {
        "phase": status.phase,
        "state": status.state,
        "reason": status.reason,
        "replicaStatuses": [_write_replica(r, tag) for r in status.replica_statuses],
        "conditions": [parts.write_condition(condition) for condition in status.conditions],
        "observedGeneration": status.observed_generation,
        "startTime": parts.write_time(status.start_time),
        "completionTime": parts.write_time(status.completion_time),
        "restarts": {name: parts.write_restart(r) for name, r in sorted(status.restarts.items())},
        "failure": parts.write_failure(status.failure) if status.failure else None,
    }
    kept = {"phase", "state", "reason", "replicaStatuses"}
    return {name: value for name, value in wire.items() if value or name in kept}


def read(raw: msgspec.Raw, tag: str) -> JobStatus:
    """Read a status back; whatever is missing or malformed counts as not there."""
    return of_wire(parts.stored(raw), tag)


def of_wire(wire: JSON, tag: str) -> JobStatus:
    """Return the status that decoded JSON holds, as :func:`read` does."""
    restarts = parts.mapping(wire.get("restarts"))
    failure = parts.mapping(wire.get("failure"))
    return JobStatus(
        phase=parts.member(JobPhase, wire.get("phase"), JobPhase.NEW),
        state=parts.member(JobState, wire.get("state"), JobState.UNKNOWN),
        reason=parts.text(wire, "reason"),
        replica_statuses=tuple(
            _read_replica(r, tag) for r in parts.mappings(wire, "replicaStatuses")
        ),
        conditions=tuple(parts.read_condition(c) for c in parts.mappings(wire, "conditions")),
        observed_generation=parts.number(wire, "observedGeneration") or 0,
        start_time=parts.read_time(wire.get("startTime")),
        completion_time=parts.read_time(wire.get("completionTime")),
        restarts={
            name: parts.read_restart(parts.mapping(restart)) for name, restart in restarts.items()
        },
        failure=parts.read_failure(failure) if failure else None,
    )


def _type_field(tag: str) -> str:
    return f"{tag}_replica_type" if tag else "replicaType"


def _write_replica(replica: ReplicaStatus, tag: str) -> JSON:
    wire: JSON = {
        _type_field(tag): replica.type.upper(),
        "state": replica.state,
        "ReplicasStates": {state: count for state, count in replica.counts.items() if count},
    }
    if replica.completed:
        wire["completedIndexes"] = indexes.write(replica.completed)
    return wire


def _read_replica(wire: JSON, tag: str) -> ReplicaStatus:
    counts = parts.mapping(wire.get("ReplicasStates"))
    return ReplicaStatus(
        type=parts.text(wire, _type_field(tag)).lower(),
        state=parts.member(JobState, wire.get("state"), JobState.UNKNOWN),
        counts={state: count for state in JobState if (count := parts.number(counts, state))},
        completed=indexes.read(parts.text(wire, "completedIndexes")),
    )
