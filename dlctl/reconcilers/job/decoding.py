"""Decodes the job of an object, even if its spec is invalid; a large one in a thread.

An invalid job that has not started yields no job. One that has started continues: with the last
valid spec if it is known, else with the valid parts of the current one.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import attrs
import msgspec
from cachetools import LRUCache

from dlctl.api.job import Job, JobObject
from dlctl.api.meta import UID
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.content_errors import ContentError, wrap_content_errors
from dlctl.reconcilers.job.status_conflicts import restore_own_status
from dlctl.reconcilers.planning_threads import LARGE_JOB, read_in_thread, reading_size

T = TypeVar("T")
DecodingFailure = InvalidJobError | ContentError
# The cache keeps decoded jobs up to this total: the bytes of their specs, and a constant for each.
_CACHE_BYTES: Final = 512 << 10
_BYTES_PER_JOB: Final = 1024


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


@attrs.define(eq=False)
class _Cached:
    stored: JobObject
    obj: DecodedObject
    # None until it is known to be valid.
    job: DecodedJob | None = None
    # The job with an earlier status, and the same spec.
    earlier_job: Job | None = None


@attrs.define(eq=False)
class JobDecoder:
    """Decodes the objects of one kind; the specs of those used last are decoded only once.

    Most reconciles are caused by pods, and see the same object as the one before, or by a write of
    the status.
    """

    kind: Kind
    _cached: LRUCache[UID, _Cached] = attrs.field(
        init=False, factory=lambda: LRUCache(_CACHE_BYTES, getsizeof=_size)
    )

    async def decode(
        self,
        stored: JobObject,
        last_good_spec: msgspec.Raw | None = None,
        *,
        has_pods: bool = False,
    ) -> tuple[DecodedObject, DecodedJob | ContentError]:
        """Decode an object and its job: see :func:`decode_job`, whose error is returned."""
        cached = self._known(stored)
        found = _reusable(cached) if cached else None
        if cached is None or found is None:
            known = cached.obj if cached else None
            decode = partial(
                decode_with_job, self.kind, stored, last_good_spec, known, has_pods=has_pods
            )
            size = reading_size(stored.readable_spec, last_good_spec)
            obj, read = await self._call(decode, size, stored.metadata.namespace)
            cached, found = _Cached(stored, obj), read
        if isinstance(found, DecodedJob) and found.error is None:
            cached.job = found
        self._remember(cached)
        return cached.obj, found

    async def _call(self, decode: Callable[[], T], size: int, namespace: str | None) -> T:
        if size < LARGE_JOB:
            return decode()
        # A job that waits for its turn holds no decoded spec, which takes up to 45 times its text.
        return await read_in_thread(namespace or "", decode)

    def _remember(self, cached: _Cached) -> None:
        self.forget(cached.stored.metadata.uid)
        if _size(cached) <= _CACHE_BYTES:
            self._cached[cached.stored.metadata.uid] = cached

    def forget(self, uid: UID) -> None:
        """Drop an object that is gone."""
        self._cached.pop(uid, None)

    def _known(self, stored: JobObject) -> _Cached | None:
        """Return what is known of an object, perhaps from before its last status."""
        cached = self._cached.get(stored.metadata.uid)
        if cached is None or cached.stored is stored:
            return cached
        same = self._differs_in_status_only(stored, cached)
        return _with_new_status(stored, cached) if same else None

    def _differs_in_status_only(self, stored: JobObject, cached: _Cached) -> bool:
        if self.kind.choose_version is not None or cached.obj.dialect.status_affects_replicas:
            return False
        new, old = stored.metadata, cached.stored.metadata
        return (
            (new.name, new.generation, new.labels) == (old.name, old.generation, old.labels)
            and new.annotations == old.annotations
            and bytes(stored.readable_spec) == bytes(cached.stored.readable_spec)
        )


def _size(cached: _Cached) -> int:
    return _BYTES_PER_JOB + len(bytes(cached.stored.readable_spec))


def _with_new_status(stored: JobObject, cached: _Cached) -> _Cached:
    obj = msgspec.structs.replace(cached.obj, metadata=stored.metadata, status=stored.status)
    return _Cached(stored, obj, earlier_job=cached.job.job if cached.job else cached.earlier_job)


def _reusable(cached: _Cached) -> DecodedJob | ContentError | None:
    """Return what reading the object again would yield; None if it has to be read."""
    if cached.job is not None or cached.earlier_job is None:
        return cached.job
    try:
        return _with_status(cached.obj, cached.earlier_job)
    except ContentError as error:
        return error


def _with_status(obj: DecodedObject, job: Job) -> DecodedJob | None:
    """Return a job with the status of an object; None if its spec has to be read again."""
    with wrap_content_errors("reading the status"):
        status = obj.dialect.read_status(obj)
    # A spec that is invalid for a new job may be valid for one that has started.
    if status.phase is JobPhase.NEW:
        return None
    return DecodedJob(attrs.evolve(job, status=status), obj, status)


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
        with wrap_content_errors("reading"):
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
    with wrap_content_errors("reading the status"):
        status = source.dialect.read_status(source)
    if status.phase is JobPhase.NEW and not has_pods:
        return DecodedJob(None, source, status, error)
    reason = str(error)
    for readable in (obj,) if source is obj else (source, obj):
        try:
            with wrap_content_errors("reading"):
                job = lenient_reader.read_partially(kind, readable, reason)
                job = lenient_reader.with_run_policy(job, obj)
        except (InvalidJobError, ContentError):
            continue
        return DecodedJob(job, source, status, error)
    with wrap_content_errors("reading"):
        job = lenient_reader.with_run_policy(
            lenient_reader.job_without_spec(kind, source, status, reason), obj
        )
    return DecodedJob(job, source, status, error)
