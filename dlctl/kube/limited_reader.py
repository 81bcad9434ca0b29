"""Reads responses of which tenants choose the length, such as pages of lists."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import aiohttp
import attrs

from dlctl.kube.errors import ResponseTooLargeError

# Each response is read up to here; the rest when it is its turn.
_FREE_BYTES: Final = 1 << 20


@attrs.define(eq=False)
class LimitedReader:
    """Reads long responses one at a time, so that together they take the memory of one."""

    _turn: asyncio.Lock = attrs.field(init=False, factory=asyncio.Lock)

    async def read(self, response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
        """Return the body of a response.

        :raises ResponseTooLargeError: if it is longer; the rest is not read.
        """
        chunks: list[bytes] = []
        size = 0
        async with AsyncExitStack() as turn:
            async for chunk in response.content.iter_any():
                if size <= _FREE_BYTES < size + len(chunk):
                    await turn.enter_async_context(self._turn)
                size += len(chunk)
                if size > max_bytes:
                    raise ResponseTooLargeError(f"the response has more than {max_bytes:,} bytes")
                chunks.append(chunk)
            return b"".join(chunks)
