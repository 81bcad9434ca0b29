"""Output to readers that are slow, pause or leave."""

import asyncio
import io
import os
import pty
import time
from collections.abc import Callable, Iterator
from typing import TextIO

import attrs
import pytest

from dlctl.cli.display.output import Output


@attrs.frozen
class Pipe:
    """A pipe whose reader is the test."""

    reader: int
    stream: TextIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    with open(writer, "w", encoding="utf-8") as stream:
        yield Pipe(reader, stream)
    os.close(reader)


def read_all(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(fd, 1 << 16)
    return data


async def test_text_reaches_a_stream_without_a_file_in_order() -> None:
    stream = io.StringIO()
    output = Output(stream)
    for number in range(1000):
        output.write(f"{number}\n")
    await output.drained(0)
    output.close()
    assert stream.getvalue().split() == [str(number) for number in range(1000)]


async def test_reader_that_pauses_stops_writers_but_not_the_loop(pipe: Pipe) -> None:
    output = Output(pipe.stream)
    while not output.full:
        output.write("x" * 10_000)
    waiting = asyncio.create_task(output.drained(0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await asyncio.shield(waiting)
    reading = asyncio.create_task(asyncio.to_thread(read_all, pipe.reader, 200_000))
    await waiting
    output.close()
    assert set(await reading) == {ord("x")}


async def test_close_does_not_wait_for_a_reader_that_pauses(pipe: Pipe) -> None:
    output = Output(pipe.stream)
    output.write("x" * 1_000_000)
    started = time.monotonic()
    output.close()
    assert time.monotonic() < started + 5


@pytest.mark.parametrize("connect", [os.pipe, pty.openpty])
async def test_reader_that_has_left_is_an_error(connect: Callable[[], tuple[int, int]]) -> None:
    reader, writer = connect()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        output = Output(stream)
        output.write("lost")
        with pytest.raises(BrokenPipeError):
            await output.drained(0)
        with pytest.raises(BrokenPipeError):
            output.write("more")
        output.close()


async def test_text_that_the_encoding_lacks_is_replaced() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="ascii") as stream:
        output = Output(stream)
        output.write("gr\N{LATIN SMALL LETTER O WITH DIAERESIS}\N{LATIN SMALL LETTER SHARP S}e\n")
        await output.drained(0)
        output.close()
        assert os.read(reader, 100) == b"gr??e\n"
    os.close(reader)
