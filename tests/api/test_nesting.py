"""Measuring and truncating the depth of JSON text, compared with a plain recursion."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.nesting import exceeds_depth, truncate_to_depth
from tests.support.cost_growth import cost_growth

# Brackets, quotes and backslashes in strings are what a scanner trips over.
TEXTS = st.text(st.sampled_from('[]{}"\\a,:é'), max_size=5)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)
LEVELS = st.integers(1, 6)


def depth(value: Any) -> int:
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, items), default=0)
    return 0


@given(VALUES, LEVELS)
def test_depth_is_that_of_the_value(value: Any, levels: int) -> None:
    assert exceeds_depth(msgspec.json.encode(value), levels) == (depth(value) > levels)


def test_more_values_than_may_be_examined_count_as_too_deep() -> None:
    text = b"[" + b",".join([b"{}"] * 99) + b"]"
    assert not exceeds_depth(text, max_values=100)
    assert exceeds_depth(text, max_values=99)
    assert not exceeds_depth(b'["' + b"[" * 200 + b'"]', max_values=100)


@given(VALUES, LEVELS)
def test_truncated_text_keeps_all_above_the_depth(value: Any, levels: int) -> None:
    truncated = truncate_to_depth(msgspec.json.encode(value), levels)
    cut = msgspec.json.decode(truncated.text)
    assert truncated.is_complete
    assert depth(cut) == min(depth(value), levels)
    if depth(value) <= levels:
        assert cut == value


@given(VALUES, LEVELS)
def test_removed_values_are_what_the_truncated_text_lacks(value: Any, levels: int) -> None:
    text = msgspec.json.encode(value)
    truncated = truncate_to_depth(text, levels)
    assert all(depth(msgspec.json.decode(removed)) for removed in truncated.removed)
    lacking = sum(len(removed) - len(b"null") for removed in truncated.removed)
    assert len(truncated.text) + lacking == len(text)


@given(VALUES, LEVELS, st.integers(0, 10))
def test_text_with_too_many_brackets_is_closed(value: Any, levels: int, most: int) -> None:
    truncated = truncate_to_depth(msgspec.json.encode(value), levels, max_brackets=most)
    assert depth(msgspec.json.decode(truncated.text)) <= levels


@pytest.mark.parametrize(
    "text_of",
    [
        pytest.param(lambda n: b"[" * 70 * n + b"]" * 70 * n, id="one deep"),
        pytest.param(lambda n: b"[" + b"[],".join([b"[" * 60 + b"]" * 60] * n) + b"]", id="many"),
        pytest.param(lambda n: b'["' + b'\\"[' * 40 * n + b'"]', id="escapes"),
    ],
)
def test_time_grows_no_faster_than_the_object(text_of: Callable[[int], bytes]) -> None:
    def read(size: int) -> None:
        text = text_of(size)
        exceeds_depth(text)
        truncate_to_depth(text)

    assert cost_growth(read, small=2_000) < 10
