"""Which pending ScaleIns and ScaleOuts of a job are read: of many, the oldest. Pure.

Each costs a decoding, and new ones two writes. The end of one wakes the job, and the next is read.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from dlctl.api.meta import Resource
from dlctl.api.objects.scalers import ScalerObject, ScalerPhase
from dlctl.clock import EPOCH

MAX_COUNT: Final = 32
# The maximum size of their specs and statuses together; one scaler is read whatever its size.
MAX_BYTES: Final = 256 << 10


class _Status(msgspec.Struct):
    phase: str = ""


PendingScaler = tuple[Resource, ScalerObject]


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
