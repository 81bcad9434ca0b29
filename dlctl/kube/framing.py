"""Split the chunks of a socket into lines: one JSON watch event each.

Chunks ignore lines: a large object spans many, and one may contain many small objects.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final

from dlctl.kube.errors import UnexpectedResponseError

# Objects in etcd are at most 1.5 MiB by default; anything longer than this is not an event.
MAX_LINE_BYTES: Final = 32 << 20
# Lines yielded before yielding to the event loop: some milliseconds of work for their reader.
_LINES_PER_TURN: Final = 32


async def split_lines(
    chunks: AsyncIterable[bytes], *, max_bytes: int = MAX_LINE_BYTES
) -> AsyncGenerator[bytes]:
    """Yield each line without its newline, and the last one even if it has none.

    Yields to the event loop after each chunk and within large ones: data that is already buffered
    would never do so.
    """
    # The start of an unfinished line, in pieces: joining them chunk by chunk would take quadratic
    # time.
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
            for number, line in enumerate(lines, start=1):
                yield line
                if number % _LINES_PER_TURN == 0:
                    await asyncio.sleep(0)
            pieces, held = [tail], len(tail)
        await asyncio.sleep(0)
    if last := b"".join(pieces):
        yield last
