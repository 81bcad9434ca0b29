"""The ends of logs that were read, of all jobs together: the memory for them is bounded."""

from typing import Final

import attrs
from cachetools import LRUCache

from dlctl.reconcilers.failures.log_requests import LogRequest

# Several hundred of programs whose output does not compress.
MAX_BYTES: Final = 32 * 1024 * 1024
# Of an entry, beside its tail; a tail may be empty.
_ENTRY_BYTES: Final = 1024


def _size(tail: bytes) -> int:
    return len(tail) + _ENTRY_BYTES


@attrs.define(eq=False)
class TailCache:
    """Compressed tails by what they were requested for; the least recently used is dropped first.

    A dropped tail counts as a log that cannot be read: the next verdict is by the pod alone.
    """

    max_bytes: int = MAX_BYTES
    _tails: LRUCache[LogRequest, bytes] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tails = LRUCache(self.max_bytes, getsizeof=_size)

    @property
    def size(self) -> int:
        """Return the bytes that it takes."""
        return int(self._tails.currsize)

    def get(self, request: LogRequest) -> bytes | None:
        return self._tails.get(request)

    def put(self, request: LogRequest, tail: bytes) -> None:
        if _size(tail) <= self.max_bytes:
            self._tails[request] = tail

    def discard(self, request: LogRequest) -> None:
        self._tails.pop(request, None)
