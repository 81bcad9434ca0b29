"""The status of a TrainingJob: et-operator's fields, and dlctl's memory under ``dlctl``.

Workers are told by the names of their pods, as et-operator does, and known by their indexes. A
status without the memory was written by another operator.
"""

from typing import Any, Final

import attrs
import msgspec

from dlctl.api.elastic import LAUNCHER, WORKER, Roster, Scaling
from dlctl.api.status import JobPhase, JobState, JobStatus
from dlctl.dialects import indexes, map_status
from dlctl.dialects import status_parts as parts

JSON = dict[str, Any]
_OWN: Final = "dlctl"
_MEMBERS: Final = "targetWorkers"
_HOSTS: Final = "currentWorkers"
_PHASES: Final = {
    JobPhase.NEW: "",
    JobPhase.CREATING: "Created",
    JobPhase.RUNNING: "Running",
    JobPhase.RESTARTING: "Created",
    JobPhase.SUSPENDED: "Suspended",
    JobPhase.FAILED: "Failed",
}
# Longer than an index that a worker can come to have: a mangled name must not become one.
_DIGITS: Final = 9


class Types:
    """How the types of a TrainingJob's replicas are spelt in its status."""

    replica_types = (LAUNCHER, WORKER)

    @staticmethod
    def spelling(replica_type: str) -> str:
        return replica_type.capitalize()


def prefix(job: str) -> str:
    """Return what the names of a job's workers begin with, before their indexes."""
    return f"{job}-{WORKER}-"


def write(status: JobStatus) -> JSON:
    """Return the wire form, with what et-operator's own definition requires."""
    wire = map_status.write(status, Types)
    roster = status.roster
    named: JSON = {
        "phase": _phase(status),
        "currentScaler": roster.scaling.scaler if roster and roster.scaling else "",
        _MEMBERS: _names(status, roster.members if roster else ()),
        _HOSTS: _names(status, roster.hosts if roster else ()),
    }
    if roster and not status.foreign:
        wire[_OWN] = {**wire.get(_OWN, {}), "roster": _write_roster(roster)}
    required = {"conditions": [], "replicaStatuses": {}, "restartCount": status.whole_restarts}
    return {**required, **wire, **{name: value for name, value in named.items() if value}}


def read(raw: msgspec.Raw, job: str) -> JobStatus:
    """Read the status of a job of that name back, or the one of et-operator."""
    status = map_status.read(raw, Types)
    wire = parts.stored(raw)
    own = parts.mapping(wire.get(_OWN))
    members, hosts = workers_of(wire.get(_MEMBERS), job), workers_of(wire.get(_HOSTS), job)
    if status.foreign:
        # It may have lost a write: whom its launcher knows is a worker all the same.
        members = tuple(sorted({*members, *hosts}))
    roster = None
    if "roster" in own or (status.foreign and members):
        memory = parts.mapping(own.get("roster"))
        roster = Roster(
            members=members,
            hosts=hosts,
            spent=indexes.read(parts.text(memory, "spent")),
            followed=parts.number(memory, "followed") or 0,
            scaling=_read_scaling(memory.get("scaling")),
            fleeing=_read_scaling(memory.get("fleeing")),
            edition=parts.number(memory, "edition") or 0,
        )
    return attrs.evolve(
        status,
        roster=roster,
        whole_restarts=parts.number(wire, "restartCount") or 0,
        workers_named=prefix(job),
    )


def _phase(status: JobStatus) -> str:
    if status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE):
        return "Failed" if status.state is JobState.FAILED else "Succeeded"
    scales = status.roster is not None and status.roster.scaling is not None
    if scales and status.phase is JobPhase.RUNNING:
        return "Scaling"
    return _PHASES[status.phase]


def _names(status: JobStatus, workers: tuple[int, ...]) -> list[str]:
    return [f"{status.workers_named}{index}" for index in workers]


def workers_of(names: Any, job: str) -> tuple[int, ...]:
    """Return the workers of these names; one that is none of the job's counts as not there."""
    if not isinstance(names, list):
        return ()
    found = (_index(name, prefix(job)) for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(index for index in found if index is not None))


def _index(name: str, before: str) -> int | None:
    digits = name.removeprefix(before)
    numbered = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
    return int(digits) if numbered and name.startswith(before) else None


def _write_roster(roster: Roster) -> JSON:
    wire: JSON = {"followed": roster.followed}
    if roster.edition:
        wire["edition"] = roster.edition
    if roster.spent:
        wire["spent"] = indexes.write(roster.spent)
    if roster.scaling:
        wire["scaling"] = _write_scaling(roster.scaling)
    if roster.fleeing:
        wire["fleeing"] = _write_scaling(roster.fleeing)
    return wire


def _write_scaling(scaling: Scaling) -> JSON:
    wire: JSON = {
        "workers": list(scaling.workers),
        "since": parts.write_time(scaling.since),
        "adds": scaling.adds,
        "scaler": scaling.scaler,
        "uid": scaling.uid,
        "failures": scaling.failures,
        "ready": scaling.ready,
        "done": scaling.done,
        "unused": list(scaling.unused),
    }
    always = ("workers", "since", "adds")
    return {name: value for name, value in wire.items() if value or name in always}


def _read_scaling(wire: Any) -> Scaling | None:
    if not isinstance(wire, dict):
        return None
    return Scaling(
        adds=wire.get("adds") is True,
        workers=_indexes(wire.get("workers")),
        since=parts.read_time(wire.get("since")) or parts.EPOCH,
        scaler=parts.text(wire, "scaler"),
        uid=parts.text(wire, "uid"),
        failures=parts.number(wire, "failures") or 0,
        ready=wire.get("ready") is True,
        done=wire.get("done") is True,
        unused=_indexes(wire.get("unused")),
    )


def _indexes(wire: Any) -> tuple[int, ...]:
    listed = wire if isinstance(wire, list) else []
    return tuple(i for i in listed if isinstance(i, int) and i >= 0)
