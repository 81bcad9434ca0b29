"""Fence for writes: checks at the last moment that this process may still write.

The permission comes from elsewhere and may end at any time: a process suspended between the check
and the socket continues there when it wakes up.
"""

import struct
from collections.abc import Callable
from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload

from dlctl.kube.errors import WriteFencedError

MayWrite = Callable[[], bool]
# SO_LINGER value with which a close returns at once and drops unsent data.
NO_LINGER: Final = struct.pack("ii", 1, 0)


def fenced(may_write: MayWrite, body: bytes | None) -> "FencedBody | None":
    """Return the body of a write with the fence attached; raise WriteFencedError at once."""
    check(may_write)
    return None if body is None else FencedBody(body, may_write)


class FencedBody(BytesPayload):
    """A body that is checked once more when its connection is ready to send it.

    The headers wait for the body. Even without it, the server could do nothing with them.
    """

    def __init__(self, body: bytes, may_write: MayWrite) -> None:
        super().__init__(body)
        self._may_write = may_write

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        check(self._may_write)
        await super().write_with_length(writer, content_length)


def check(may_write: MayWrite) -> None:
    if not may_write():
        raise WriteFencedError("not sent: this process may not write (lease lost or not held)")
