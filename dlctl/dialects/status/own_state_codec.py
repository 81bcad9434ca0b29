"""dlctl's own state in a status on the wire, the same in all dialects. Reading never fails."""

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.dialects.status import attempts_codec, index_ranges, restarts_codec
from dlctl.dialects.status import status_codec as codec


def write(status: JobStatus) -> JSON:
    """Return the wire form, empty fields included."""
    return {
        "phase": status.phase,
        # The reason of an invalid spec shows whether it has been reported.
        "reason": status.reason,
        "observedGeneration": status.observed_generation,
        restarts_codec.FIELD: restarts_codec.write(status.restarts),
        "failure": codec.write_failure(status.failure) if status.failure else None,
        "attempts": attempts_codec.write(status.attempts),
        "firstRunTime": codec.write_time(status.first_run_time),
        "jobRestarts": status.job_restarts,
        "countedRestarts": status.counted_restarts,
        "avoidanceDroppedTime": codec.write_time(status.avoidance_dropped_at),
        "scaledDownIndexes": index_ranges.write_by_type(status.scaled_down),
    }


def read(wire: JSON) -> JobStatus:
    """Return a status with this state alone; malformed fields count as absent."""
    failure = codec.mapping(wire.get("failure"))
    return JobStatus(
        phase=codec.enum_member(JobPhase, wire.get("phase"), JobPhase.NEW),
        reason=codec.text(wire, "reason"),
        observed_generation=codec.number(wire, "observedGeneration") or 0,
        restarts=restarts_codec.read(codec.mapping(wire.get(restarts_codec.FIELD))),
        failure=codec.read_failure(failure) if failure else None,
        attempts=attempts_codec.read(wire, "attempts"),
        first_run_time=codec.read_time(wire.get("firstRunTime")),
        job_restarts=codec.count(wire, "jobRestarts"),
        counted_restarts=codec.count(wire, "countedRestarts"),
        avoidance_dropped_at=codec.read_time(wire.get("avoidanceDroppedTime")),
        scaled_down=index_ranges.read_by_type(codec.mapping(wire.get("scaledDownIndexes"))),
    )
