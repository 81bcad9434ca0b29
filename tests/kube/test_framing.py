"""Splitting a stream of chunks into lines."""

import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.kube.errors import UnexpectedResponseError
from dlctl.kube.framing import split_lines
from tests.support.timing import turns_during


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@given(st.lists(st.binary(max_size=8)), st.lists(st.integers(0, 80)))
async def test_lines_do_not_depend_on_chunk_boundaries(texts: list[bytes], cuts: list[int]) -> None:
    expected = [text.replace(b"\n", b"") for text in texts]
    stream = b"".join(line + b"\n" for line in expected)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    parts = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert [line async for line in split_lines(chunks(*parts))] == expected


async def test_last_line_needs_no_newline() -> None:
    assert [line async for line in split_lines(chunks(b"a\nb", b"c"))] == [b"a", b"bc"]


async def test_endless_line_is_rejected() -> None:
    with pytest.raises(UnexpectedResponseError, match="longer than 10 bytes"):
        [line async for line in split_lines(chunks(b"123456", b"123456"), max_bytes=10)]


async def test_chunk_of_many_lines_gives_others_their_turns() -> None:
    async def split() -> None:
        lines = [line async for line in split_lines(chunks(b"{}\n" * 1_000))]
        assert len(lines) == 1_000

    assert await turns_during(split()) >= 30
