"""The ScaleIns and ScaleOuts of a job: how they are found and read; of many, the oldest. Pure.

Each costs a decoding, and new ones two writes. The end of one enqueues the job for
the next.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.objects.scalers import Scaler, ScalerObject, ScalerPhase
from dlctl.clock import EPOCH
from dlctl.dialects.elastic_dialect import ElasticDialect
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors

# The index of pending scalers, by job.
BY_JOB: Final = "job"
MAX_COUNT: Final = 32
# The maximum size of their specs and statuses together; one scaler is read whatever its size.
MAX_BYTES: Final = 256 << 10


class _Status(msgspec.Struct):
    phase: str = ""


PendingScaler = tuple[Resource, ScalerObject]


def read_scaler(dialect: ElasticDialect, resource: Resource, obj: ScalerObject) -> Scaler:
    """Decode a scaler; a malformed one has an ``invalid_reason``, and its job continues.

    Nothing is logged, for each look at a scaler reads it: its condition and event give the reason.
    """
    try:
        with wrap_content_errors(Step.READING):
            return dialect.scalers.read(obj, resource)
    except ContentError as error:
        return dialect.scalers.without_spec(obj, resource, invalid_reason=str(error))


def scale_target(scaler: Scaler) -> ObjectKey | None:
    """Return the job that a scaler names, or None."""
    return ObjectKey(scaler.key.namespace, scaler.job) if scaler.job else None


def index_by_job(read: Callable[[ScalerObject], Scaler], obj: ScalerObject) -> Iterator[str]:
    """Yield the index key of a scaler: its job, or none once it is finished."""
    scaler = read(obj)
    target = scale_target(scaler)
    if target is not None and not scaler.status.phase.finished:
        yield str(target)


def first_pending(pending: Iterable[PendingScaler], current: str) -> list[PendingScaler]:
    """Return the oldest ones, after those in progress.

    ``current`` is the UID of the operation that the job's status names; the status of another
    operator names none.
    """

    def order(one: PendingScaler) -> tuple[bool, bool, object, str, str]:
        resource, obj = one
        meta = obj.metadata
        created = meta.creation_timestamp or EPOCH
        return meta.uid != current, not _is_scaling(obj), created, resource.kind, meta.name

    return list(_within_size(heapq.nsmallest(MAX_COUNT, pending, key=order)))


def _is_scaling(scaler: ScalerObject) -> bool:
    try:
        return msgspec.json.decode(scaler.status, type=_Status).phase == ScalerPhase.SCALING
    except msgspec.DecodeError:
        return False


def _within_size(scalers: Iterable[PendingScaler]) -> Iterator[PendingScaler]:
    left = MAX_BYTES
    for resource, obj in scalers:
        if left <= 0:
            return
        yield resource, obj
        left -= len(bytes(obj.spec)) + len(bytes(obj.status))
