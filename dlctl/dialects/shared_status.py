"""The status of a list form that is stored beside Kubeflow's v1, whose typed clients decode it.

One object that they cannot decode stops every typed list and watch of the kind, so the fields of v1
hold what v1 says. The list that users of the old form know is under ``dlctl``, which v1's types
skip.
"""

from typing import Any, Final

import attrs
import msgspec

from dlctl.api.status import JobPhase, JobStatus
from dlctl.dialects import list_status, map_status
from dlctl.dialects import status_parts as parts

JSON = dict[str, Any]
_OWN: Final = "dlctl"
_REPLICAS: Final = "replicaStatuses"


def write(status: JobStatus, tag: str, types: map_status.Spelt) -> JSON:
    """Return the wire form; of another operator's status, what it has in common with ours."""
    wire = list_status.write(status, tag)
    listed = wire.pop(_REPLICAS)
    if status.foreign:
        return wire
    return {**wire, _REPLICAS: map_status.write_counts(status, types), _OWN: {_REPLICAS: listed}}


def read(raw: msgspec.Raw, tag: str) -> JobStatus:
    """Read a status back, or one that an older operator has left: it has the list in v1's field."""
    wire = parts.stored(raw)
    own = parts.mapping(wire.get(_OWN))
    listed = (own or wire).get(_REPLICAS)
    status = list_status.of_wire({**wire, _REPLICAS: listed}, tag)
    return attrs.evolve(status, foreign=not own and status.phase is not JobPhase.NEW)
