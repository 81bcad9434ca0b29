"""Lines out of the chunks that a socket delivers: one JSON watch event each.

Chunks know nothing of lines, so a large object arrives in many and many small ones in one.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final

from dlctl.kube.errors import UnexpectedResponseError

# Objects in etcd end at 1.5 MiB by default; what is longer than this is no event.
MAX_LINE_BYTES: Final = 32 << 20


async def split_lines(
    chunks: AsyncIterable[bytes], *, max_bytes: int = MAX_LINE_BYTES
) -> AsyncGenerator[bytes]:
    """Yield each line without its end, and the last one even if it has none.

    The event loop gets a turn per chunk, as data that is there already would never give it one.
    """
    # The start of a line whose end has not come yet, in pieces: joining them chunk by chunk
    # would take time quadratic in the length of the line.
    pieces: list[bytes] = []
    held = 0
    async for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        pieces.append(head)
        held += len(head)
        if held > max_bytes:
            raise UnexpectedResponseError(f"a watch event is longer than {max_bytes} bytes")
        if rest:
            yield b"".join(pieces)
            *lines, tail = rest
            for line in lines:
                yield line
            pieces, held = [tail], len(tail)
        await asyncio.sleep(0)
    if last := b"".join(pieces):
        yield last
