"""Reading the job of an object, also where its spec cannot be read. Pure.

A job that has not begun is then none. One that has goes on: under the last spec that could be read,
if that is known, else under what can be read of this one.
"""

from collections.abc import Callable

import attrs
import msgspec

from dlctl.api.job import Job, JobObject
from dlctl.api.status import JobPhase, JobStatus
from dlctl.dialects import tolerant
from dlctl.dialects.kinds import Kind
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.content import ContentError, content_of

Unreadable = InvalidJobError | ContentError


@attrs.frozen
class Reading:
    """What an object says."""

    # None if it cannot be read, and nothing of it has begun.
    job: Job | None
    # The object, with the spec that the job was read from.
    obj: JobObject
    status: JobStatus
    error: Unreadable | None = None


def reading(kind: Kind, obj: JobObject, good: msgspec.Raw | None = None) -> Reading:
    """Read an object; ``good`` is the last spec of it that could be read, as far as known."""
    try:
        with content_of("reading"):
            job = kind.read(obj)
    except (InvalidJobError, ContentError) as error:
        return _unreadable(kind, obj, good, error)
    return Reading(job, obj, job.status)


def _unreadable(kind: Kind, obj: JobObject, good: msgspec.Raw | None, error: Unreadable) -> Reading:
    # The form of the spec decides on the form of the status.
    source = obj if good is None else msgspec.structs.replace(obj, spec=good)
    with content_of("reading the status"):
        status = kind.read_status(source)
    if status.phase is JobPhase.NEW:
        return Reading(None, source, status, error)
    reason = str(error)
    ways: list[Callable[[], Job]] = [lambda: tolerant.partly(kind, obj, reason)]
    if good is not None:
        ways.insert(0, lambda: attrs.evolve(kind.read(source), invalid_reason=reason))
    for way in ways:
        try:
            with content_of("reading"):
                job = tolerant.with_run_policy(way(), kind, obj)
        except (InvalidJobError, ContentError):
            continue
        return Reading(job, source, status, error)
    with content_of("reading"):
        job = tolerant.with_run_policy(tolerant.bare(kind, source, reason), kind, obj)
    return Reading(job, source, status, error)
