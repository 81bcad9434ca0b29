"""Sets of indexes as text: written, read back, and malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.dialects.status import index_ranges
from tests.support.cost_growth import cost_growth


@given(st.frozensets(st.integers(min_value=0, max_value=9_999)))
def test_what_is_written_is_read_back(given_indexes: frozenset[int]) -> None:
    assert index_ranges.read(index_ranges.write(given_indexes)) == given_indexes


def test_indexes_by_type_are_read_as_far_as_they_make_sense() -> None:
    assert index_ranges.write_by_type({"worker": frozenset({1, 2}), "ps": frozenset()}) == {
        "worker": "1-2"
    }
    wire = {"worker": "1-2", "ps": 3, "chief": "x", "master": None}
    assert index_ranges.read_by_type(wire) == {"worker": frozenset({1, 2})}
    many = {str(number): "0-99999" for number in range(1000)}
    assert len(index_ranges.read_by_type(many)) == index_ranges.MAX_TYPES


@pytest.mark.parametrize(
    ("given_indexes", "text"),
    [
        ([], ""),
        ([4], "4"),
        ([7, 3, 1, 5, 4], "1,3-5,7"),
        (range(1000), "0-999"),
    ],
)
def test_consecutive_indexes_are_written_as_ranges(given_indexes: list[int], text: str) -> None:
    assert index_ranges.write(given_indexes) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1,x,3", {1, 3}),
        ("-1,2-,5-3,2", {2}),
        (",,", set()),
        ("0-99999999999999", set()),
        ("99999999999999", set()),
        ("3,1,4", {3, 4}),
        ("0-2,1-3,7", {0, 1, 2, 7}),
    ],
)
def test_malformed_part_is_ignored(text: str, read: set[int]) -> None:
    assert index_ranges.read(text) == read


def test_repeated_range_is_read_once() -> None:
    def read(times: int) -> None:
        assert len(index_ranges.read("0-99999," * times)) == 100_000

    assert cost_growth(read, small=1, factor=16) < 4
