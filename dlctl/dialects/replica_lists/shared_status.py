"""The status of a list form whose kind is stored as Kubeflow's v1, for v1's typed clients.

One object that they cannot decode breaks every typed list and watch of the kind, so the fields are
v1's. The list that users of the old form know is under ``dlctl``, which v1's types ignore.
"""

from typing import Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.dialects.replica_lists import list_status
from dlctl.dialects.status import replica_map_status
from dlctl.dialects.status import status_codec as codec

_REPLICA_STATUSES: Final = "replicaStatuses"


def write(status: JobStatus, type_field: str, types: replica_map_status.ReplicaTypeNames) -> JSON:
    """Return the wire form; of another operator's status, only the common fields."""
    wire = list_status.write(status, type_field)
    replica_list = wire.pop(_REPLICA_STATUSES)
    if status.written_by_other_operator:
        return wire
    return {
        **wire,
        _REPLICA_STATUSES: replica_map_status.write_replica_statuses(status, types),
        codec.OWN_STATE_FIELD: {_REPLICA_STATUSES: replica_list},
    }


def read(raw: msgspec.Raw, type_field: str) -> JobStatus:
    """Read a status, dlctl's or an older operator's, which has the list in v1's field."""
    wire = codec.decode(raw)
    dlctl_state = codec.mapping(wire.get(codec.OWN_STATE_FIELD))
    replica_list = (dlctl_state or wire).get(_REPLICA_STATUSES)
    status = list_status.from_json({**wire, _REPLICA_STATUSES: replica_list}, type_field)
    return attrs.evolve(
        status, written_by_other_operator=not dlctl_state and status.phase is not JobPhase.NEW
    )
