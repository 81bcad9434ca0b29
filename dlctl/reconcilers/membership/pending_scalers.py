"""Which pending ScaleIns and ScaleOuts of a job are read: of many, the oldest. Pure.

Each costs a decoding, and new ones two writes. The end of one wakes the job, and the next is read.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final

from dlctl.api.elastic import ScalerObject
from dlctl.api.meta import Resource
from dlctl.clock import EPOCH

MAX_COUNT: Final = 32
# Of their specs and statuses; one is read whatever its size.
MAX_BYTES: Final = 256 << 10

PendingScaler = tuple[Resource, ScalerObject]


def first_pending(pending: Iterable[PendingScaler], current: str) -> list[PendingScaler]:
    """Return the oldest ones, after the one with the UID of the current operation."""

    def age(one: PendingScaler) -> tuple[bool, object, str, str]:
        resource, obj = one
        created = obj.metadata.creation_timestamp or EPOCH
        return obj.metadata.uid != current, created, resource.kind, obj.metadata.name

    return list(_within_size(heapq.nsmallest(MAX_COUNT, pending, key=age)))


def _within_size(scalers: Iterable[PendingScaler]) -> Iterator[PendingScaler]:
    left = MAX_BYTES
    for resource, obj in scalers:
        if left <= 0:
            return
        yield resource, obj
        left -= len(bytes(obj.spec)) + len(bytes(obj.status))
