"""The ends of logs that were read, of all jobs together: the memory for them is bounded."""

from collections import OrderedDict
from typing import Final

import attrs

from dlctl.reconcilers.failures.log_requests import LogTailRequest

# Several hundred of programs whose output does not compress.
MAX_BYTES: Final = 32 * 1024 * 1024
# The size of an entry without its tail, which may be empty.
_ENTRY_BYTES: Final = 1024


def _size(tail: bytes) -> int:
    return len(tail) + _ENTRY_BYTES


@attrs.define(eq=False)
class _NamespaceTails:
    """The tails of one namespace, the least recently used first."""

    tails: OrderedDict[LogTailRequest, bytes] = attrs.field(factory=OrderedDict)
    size: int = 0

    def discard(self, request: LogTailRequest) -> None:
        tail = self.tails.pop(request, None)
        self.size -= _size(tail) if tail is not None else 0


@attrs.define(eq=False)
class TailCache:
    """Compressed tails by what they were requested for.

    The namespace that takes the most memory drops its least recently used tail first, so that none
    drops those of others. A dropped tail counts as a log that cannot be read: the next verdict is
    by the pod alone.
    """

    max_bytes: int = MAX_BYTES
    _by_namespace: dict[str, _NamespaceTails] = attrs.field(init=False, factory=dict)

    @property
    def size(self) -> int:
        """Return the bytes that it takes."""
        return sum(own.size for own in self._by_namespace.values())

    def get(self, request: LogTailRequest) -> bytes | None:
        own = self._by_namespace.get(request.pod.namespace)
        if own is None or request not in own.tails:
            return None
        own.tails.move_to_end(request)
        return own.tails[request]

    def put(self, request: LogTailRequest, tail: bytes) -> None:
        self.discard(request)
        if _size(tail) > self.max_bytes:
            return
        own = self._by_namespace.setdefault(request.pod.namespace, _NamespaceTails())
        own.tails[request] = tail
        own.size += _size(tail)
        while self.size > self.max_bytes:
            largest = max(self._by_namespace.values(), key=lambda each: each.size)
            self.discard(next(iter(largest.tails)))

    def discard(self, request: LogTailRequest) -> None:
        if own := self._by_namespace.get(request.pod.namespace):
            own.discard(request)
            if not own.tails:
                del self._by_namespace[request.pod.namespace]
