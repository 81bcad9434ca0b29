"""The status of a TrainingJob: et-operator's fields, and dlctl's own under ``dlctl``.

It lists workers by pod name, as et-operator's does; internally they are indexes. A status without
``dlctl`` was written by another operator.
"""

from typing import Any, Final

import attrs
import msgspec

from dlctl.api.job import LAUNCHER, WORKER
from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.api.status.membership import MAX_INDEX_DIGITS, Membership, ScaleOperation, worker_indexes
from dlctl.clock import EPOCH
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.status import index_ranges, replica_map_status
from dlctl.dialects.status import status_codec as codec

# While a worker leaves its node, both the worker and its successor are members.
MAX_MEMBERS: Final = 2 * MAX_REPLICAS
_TARGET_WORKERS: Final = "targetWorkers"
_CURRENT_WORKERS: Final = "currentWorkers"
_PHASE_BY_JOB_PHASE: Final = {
    JobPhase.NEW: "",
    JobPhase.CREATING: "Created",
    JobPhase.RUNNING: "Running",
    JobPhase.RESTARTING: "Created",
    JobPhase.SUSPENDED: "Suspended",
    JobPhase.FAILED: "Failed",
}


class TrainingJobTypeNames:
    """The names of a TrainingJob's replica types in its status."""

    replica_types = (LAUNCHER, WORKER)

    @staticmethod
    def type_name(replica_type: str) -> str:
        return replica_type.capitalize()


def worker_name_prefix(job: str) -> str:
    """Return the names of a job's workers up to their indexes."""
    return f"{job}-{WORKER}-"


def write(status: JobStatus) -> JSON:
    """Return the wire form, including the fields that et-operator's own CRD requires."""
    wire = replica_map_status.write(status, TrainingJobTypeNames)
    membership = status.membership
    workers: JSON = {
        "phase": _phase(status),
        "currentScaler": membership.scaling.scaler if membership and membership.scaling else "",
        _TARGET_WORKERS: _worker_names(status, membership.members if membership else ()),
        _CURRENT_WORKERS: _worker_names(status, membership.hosts if membership else ()),
    }
    # It has et-operator's field instead.
    wire.get(codec.OWN_STATE_FIELD, {}).pop("jobRestarts", None)
    if membership and not status.written_by_other_operator:
        wire[codec.OWN_STATE_FIELD] = {
            **wire.get(codec.OWN_STATE_FIELD, {}),
            "membership": _write_membership(membership),
        }
    required = {"conditions": [], "replicaStatuses": {}, "restartCount": status.job_restarts}
    return {**required, **wire, **{name: value for name, value in workers.items() if value}}


def read(raw: msgspec.Raw, job: str) -> JobStatus:
    """Read the status of the job of this name, dlctl's or et-operator's."""
    wire = codec.decode(raw)
    status = replica_map_status.read(wire, TrainingJobTypeNames)
    state = codec.mapping(wire.get(codec.OWN_STATE_FIELD))
    prefix = worker_name_prefix(job)
    members, hosts = (
        worker_indexes(codec.texts(wire, name)[:MAX_MEMBERS], prefix)
        for name in (_TARGET_WORKERS, _CURRENT_WORKERS)
    )
    if status.written_by_other_operator:
        # et-operator may have lost a status write: workers that its launcher knows count too.
        members = tuple(sorted({*members, *hosts}))
    membership = None
    if "membership" in state or (status.written_by_other_operator and members):
        stored = codec.mapping(state.get("membership"))
        membership = Membership(
            members=members,
            hosts=hosts,
            retired=index_ranges.read(codec.text(stored, "retired")),
            observed_replicas=codec.number(stored, "observedReplicas") or 0,
            scaling=_read_scaling(stored.get("scaling")),
            evacuating=_read_scaling(stored.get("evacuating")),
            generation=codec.number(stored, "generation") or 0,
        )
    return attrs.evolve(
        status,
        membership=membership,
        job_restarts=codec.count(wire, "restartCount"),
        worker_name_prefix=prefix,
    )


def _phase(status: JobStatus) -> str:
    if status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE):
        return "Failed" if status.state is JobState.FAILED else "Succeeded"
    is_scaling = status.membership is not None and status.membership.scaling is not None
    if is_scaling and status.phase is JobPhase.RUNNING:
        return "Scaling"
    return _PHASE_BY_JOB_PHASE[status.phase]


def _worker_names(status: JobStatus, workers: tuple[int, ...]) -> list[str]:
    return [f"{status.worker_name_prefix}{index}" for index in workers]


def _write_membership(membership: Membership) -> JSON:
    wire: JSON = {"observedReplicas": membership.observed_replicas}
    if membership.generation:
        wire["generation"] = membership.generation
    if membership.retired:
        wire["retired"] = index_ranges.write(membership.retired)
    if membership.scaling:
        wire["scaling"] = _write_scaling(membership.scaling)
    if membership.evacuating:
        wire["evacuating"] = _write_scaling(membership.evacuating)
    return wire


def _write_scaling(scaling: ScaleOperation) -> JSON:
    wire: JSON = {
        "workers": list(scaling.workers),
        "since": codec.write_time(scaling.since),
        "scaleOut": scaling.is_scale_out,
        "scaler": scaling.scaler,
        "uid": scaling.uid,
        "failures": scaling.failures,
        "ready": scaling.is_ready,
        "done": scaling.is_done,
        "unused": list(scaling.unused),
    }
    always = ("workers", "since", "scaleOut")
    return {name: value for name, value in wire.items() if value or name in always}


def _read_scaling(wire: Any) -> ScaleOperation | None:
    if not isinstance(wire, dict):
        return None
    return ScaleOperation(
        is_scale_out=wire.get("scaleOut") is True,
        workers=_read_indexes(wire.get("workers")),
        since=codec.read_time(wire.get("since")) or EPOCH,
        scaler=codec.text(wire, "scaler"),
        uid=codec.text(wire, "uid"),
        failures=codec.count(wire, "failures"),
        is_ready=wire.get("ready") is True,
        is_done=wire.get("done") is True,
        unused=_read_indexes(wire.get("unused")),
    )


def _read_indexes(wire: Any) -> tuple[int, ...]:
    listed = wire[:MAX_MEMBERS] if isinstance(wire, list) else []
    return tuple(i for i in listed if isinstance(i, int) and 0 <= i < 10**MAX_INDEX_DIGITS)
