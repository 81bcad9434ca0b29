"""Decodes the job of an object, even if its spec is invalid. Pure.

An invalid job that has not started yields no job. One that has started continues: with the last
valid spec if it is known, else with the valid parts of the current one.
"""

import attrs
import msgspec

from dlctl.api.job import Job
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.reconcilers.job.status_conflicts import restore_own_status

DecodingFailure = InvalidJobError | ContentError


@attrs.frozen
class DecodedJob:
    """The result of decoding an object."""

    # None if the spec is invalid and nothing of the job has started.
    job: Job | None
    # The object with the spec from which the job was decoded.
    obj: DecodedObject
    status: JobStatus
    error: DecodingFailure | None = None


def replica_count(decoded: DecodedJob | ContentError) -> int:
    """Return the number of replicas that a job has; 0 if they are not known."""
    job = decoded.job if isinstance(decoded, DecodedJob) else None
    return job.total_replicas if job is not None else 0


def with_own_status(decoded: DecodedJob, own: JobStatus | None) -> DecodedJob:
    """Return a job with the fields of dlctl's last status that another operator's has dropped."""
    job = decoded.job
    if job is None or not job.status.written_by_other_operator or not own:
        return decoded
    status = restore_own_status(job.status, own)
    return attrs.evolve(decoded, job=attrs.evolve(job, status=status))


def decode_with_job(
    kind: Kind,
    stored: JobObject,
    last_good_spec: msgspec.Raw | None = None,
    obj: DecodedObject | None = None,
    *,
    has_pods: bool = False,
) -> tuple[DecodedObject, DecodedJob | ContentError]:
    """Decode an object, unless ``obj`` is given, and its job.

    See :func:`decode_job`, whose error is returned.
    """
    obj = obj or kind.decode(stored)
    try:
        return obj, decode_job(kind, obj, last_good_spec, has_pods=has_pods)
    except ContentError as error:
        return obj, error


def decode_job(
    kind: Kind,
    obj: DecodedObject,
    last_good_spec: msgspec.Raw | None = None,
    *,
    has_pods: bool = False,
) -> DecodedJob:
    """Decode an object; ``last_good_spec`` is its last valid spec, if known.

    One that has pods has started, even if it has no status yet.
    """
    try:
        with wrap_content_errors(Step.READING):
            job = kind.read(obj)
    except InvalidJobError as error:
        # A traceback keeps all alive that was decoded, until the garbage is collected.
        error = error.with_traceback(None)
        return _decode_leniently(kind, obj, last_good_spec, error, has_pods=has_pods)
    except ContentError as error:
        return _decode_leniently(kind, obj, last_good_spec, error, has_pods=has_pods)
    return DecodedJob(job, obj, job.status)


def _decode_leniently(
    kind: Kind,
    obj: DecodedObject,
    last_good_spec: msgspec.Raw | None,
    error: DecodingFailure,
    *,
    has_pods: bool,
) -> DecodedJob:
    # The format of the spec determines the format of the status.
    source = obj
    if last_good_spec is not None:
        source = kind.decode(JobObject(obj.metadata, spec=last_good_spec, status=obj.status))
    with wrap_content_errors(Step.READING_STATUS):
        status = source.dialect.read_status(source)
    if status.phase is JobPhase.NEW and not has_pods:
        return DecodedJob(None, source, status, error)
    reason = str(error)
    for readable in (obj,) if source is obj else (source, obj):
        try:
            with wrap_content_errors(Step.READING):
                job = lenient_reader.read_partially(kind, readable, reason)
                job = lenient_reader.with_run_policy(job, obj)
        except (InvalidJobError, ContentError):
            continue
        return DecodedJob(job, source, status, error)
    with wrap_content_errors(Step.READING):
        job = lenient_reader.with_run_policy(
            lenient_reader.job_without_spec(kind, source, status, reason), obj
        )
    return DecodedJob(job, source, status, error)
