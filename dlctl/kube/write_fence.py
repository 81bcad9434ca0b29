"""What keeps back the writes of a process that must not write, up to the last moment.

Whether it may is decided elsewhere, and may change between any two steps: a process that was
stopped on the way from its decision to the socket goes on there when it wakes up.
"""

import struct
from collections.abc import Callable
from typing import Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload

from dlctl.kube.errors import WriteFencedError

MayWrite = Callable[[], bool]
# The value of SO_LINGER by which a close waits for nothing and drops what is not sent.
NO_LINGER: Final = struct.pack("ii", 1, 0)


def fenced(may_write: MayWrite, body: bytes | None) -> "FencedBody | None":
    """Return the body of a write as one that may still be held; raise WriteHeldError at once."""
    check(may_write)
    return None if body is None else FencedBody(body, may_write)


class FencedBody(BytesPayload):
    """A body that is held, if it must be, when the connection is there to take it.

    Its headers wait for it. Should they not, the server cannot make anything of them.
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
        raise WriteFencedError("not sent: this process may not write now")
