"""Decodes the objects of one kind, with a cache; large specs in a thread."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import attrs
import msgspec
from cachetools import LRUCache

from dlctl.api.job import Job
from dlctl.api.meta import UID
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.reconcilers.job.decoding import DecodedJob, decode_with_job
from dlctl.reconcilers.large_jobs.threads import MIN_COST_FOR_THREAD, read_in_thread, reading_cost

T = TypeVar("T")
# The cache keeps decoded jobs up to this total: the bytes of their specs, of annotations that
# stores do not keep, and a constant for each.
_CACHE_BYTES: Final = 512 << 10
_BYTES_PER_JOB: Final = 1024


@attrs.define(eq=False)
class _Cached:
    stored: JobObject
    # Of the spec, and of the annotations if stores do not keep them.
    size: int
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
    # Returns a job as stored on the server, whose spec is not in the store.
    refetch: Callable[[JobObject], Awaitable[JobObject]]
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
        """Decode an object and its job: see :func:`.decode_job`, whose error is returned."""
        cached = self._known(stored)
        found = _reusable(cached) if cached else None
        if cached is None or found is None:
            known = cached.obj if cached else None
            whole = stored if stored.has_spec else await self.refetch(stored)
            decode = partial(
                decode_with_job, self.kind, whole, last_good_spec, known, has_pods=has_pods
            )
            cost = reading_cost(whole.readable_spec, last_good_spec)
            obj, read = await self._call(decode, cost, stored.metadata.namespace)
            spec_size = memoryview(whole.readable_spec).nbytes
            size = spec_size if whole is stored else whole.given_bytes
            cached, found = _Cached(stored, size, obj), read
        if isinstance(found, DecodedJob) and found.error is None:
            cached.job = found
        self._remember(cached)
        return cached.obj, found

    async def _call(self, decode: Callable[[], T], cost: int, namespace: str | None) -> T:
        if cost < MIN_COST_FOR_THREAD:
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
        if not stored.has_spec:
            return False
        new, old = stored.metadata, cached.stored.metadata
        return (
            (new.name, new.generation, new.labels) == (old.name, old.generation, old.labels)
            and new.annotations == old.annotations
            and bytes(stored.readable_spec) == bytes(cached.stored.readable_spec)
        )


def _size(cached: _Cached) -> int:
    return _BYTES_PER_JOB + cached.size


def _with_new_status(stored: JobObject, cached: _Cached) -> _Cached:
    obj = msgspec.structs.replace(cached.obj, metadata=stored.metadata, status=stored.status)
    return _Cached(
        stored, cached.size, obj, earlier_job=cached.job.job if cached.job else cached.earlier_job
    )


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
    with wrap_content_errors(Step.READING_STATUS):
        status = obj.dialect.read_status(obj)
    # A spec that is invalid for a new job may be valid for one that has started.
    if status.phase is JobPhase.NEW:
        return None
    return DecodedJob(attrs.evolve(job, status=status), obj, status)
