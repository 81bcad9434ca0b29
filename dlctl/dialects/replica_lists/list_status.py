"""The status of the list dialects: mx-operator's fields, and dlctl's additions.

``phase``, ``state``, ``reason`` and ``replicaStatuses`` are mx-operator's. Additions are
conditions, times, the restarts of each replica and the first cause of a failure.
"""

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobState, JobStatus, ReplicaStatus
from dlctl.dialects.status import index_ranges, own_state_codec
from dlctl.dialects.status import status_codec as codec


def write(status: JobStatus, type_field: str) -> JSON:
    """Return the wire form; empty fields are left out, except mx-operator's four."""
    wire: JSON = {
        **own_state_codec.write(status),
        "state": status.state,
        "replicaStatuses": [_write_replica(r, type_field) for r in status.replica_statuses],
        "conditions": [codec.write_condition(condition) for condition in status.conditions],
        "startTime": codec.write_time(status.start_time),
        "completionTime": codec.write_time(status.completion_time),
    }
    required = {"phase", "state", "reason", "replicaStatuses"}
    return {name: value for name, value in wire.items() if value or name in required}


def read(raw: msgspec.Raw, type_field: str) -> JobStatus:
    """Read a status; malformed fields count as absent."""
    return from_json(codec.decode(raw), type_field)


def from_json(obj: JSON, type_field: str) -> JobStatus:
    """Read a status from decoded JSON, like :func:`read`."""
    return attrs.evolve(
        own_state_codec.read(obj),
        state=codec.enum_member(JobState, obj.get("state"), JobState.UNKNOWN),
        replica_statuses=tuple(
            _read_replica(r, type_field) for r in codec.mappings(obj, "replicaStatuses")
        ),
        conditions=codec.read_conditions(obj),
        start_time=codec.read_time(obj.get("startTime")),
        completion_time=codec.read_time(obj.get("completionTime")),
    )


def _write_replica(replica: ReplicaStatus, type_field: str) -> JSON:
    wire: JSON = {
        type_field: replica.type.upper(),
        "state": replica.state,
        "ReplicasStates": {
            state: count for state, count in replica.count_by_state.items() if count
        },
    }
    if replica.completed_indexes:
        wire["completedIndexes"] = index_ranges.write(replica.completed_indexes)
    return wire


def _read_replica(wire: JSON, type_field: str) -> ReplicaStatus:
    counts = codec.mapping(wire.get("ReplicasStates"))
    return ReplicaStatus(
        type=codec.text(wire, type_field).lower(),
        state=codec.enum_member(JobState, wire.get("state"), JobState.UNKNOWN),
        count_by_state={
            state: count for state in JobState if (count := codec.number(counts, state))
        },
        completed_indexes=index_ranges.read(codec.text(wire, "completedIndexes")),
    )
