from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.quantities import (
    MAX_CHARS,
    PATTERN,
    QuantityError,
    canonicalize,
    parse_quantity,
    sum_quantities,
)
from tests.support.cost_growth import cost_growth


@pytest.mark.parametrize(
    ("written", "spelt"),
    [
        pytest.param("1000m", "1"),
        pytest.param("0.5", "500m"),
        pytest.param("1024Mi", "1Gi"),
        pytest.param("1.5Gi", "1536Mi"),
        pytest.param("1000", "1k"),
        pytest.param("1e3", "1e3"),
        pytest.param("0", "0"),
        pytest.param("512", "512"),
        pytest.param(2, "2"),
        pytest.param(0.1, "100m"),
    ],
)
def test_quantity_has_one_canonical_form(written: str | float, spelt: str) -> None:
    assert canonicalize(written) == spelt


@pytest.mark.parametrize("text", ["", "1x", "a", "1 Gi", "--1", "1.2.3"])
def test_other_text_is_not_a_quantity(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@given(st.integers(0, 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_canonical_form_is_equal_and_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"

    assert parse_quantity(canonicalize(text)) == parse_quantity(text)
    assert canonicalize(canonicalize(text)) == canonicalize(text)
    assert parse_quantity("1") == Decimal(1)


@pytest.mark.parametrize(
    ("amounts", "sum_"),
    [
        pytest.param([], "0"),
        pytest.param([("500m", 3)], "1500m"),
        pytest.param([("500m", 4), ("1", 1)], "3"),
        pytest.param([("1Gi", 1), ("512Mi", 2)], "2Gi"),
        pytest.param([("1Gi", 1), ("1G", 1)], "2073741824"),
        pytest.param([("1G", 1), ("1Gi", 1)], "2073741824"),
        pytest.param([("0", 5), ("1Gi", 1)], "1Gi"),
    ],
)
def test_sum_has_the_suffix_of_its_first_part(amounts: list[tuple[str, int]], sum_: str) -> None:
    assert sum_quantities(amounts) == sum_


@given(
    st.lists(
        st.tuples(
            st.builds("{}{}".format, st.integers(0, 10**6), st.sampled_from(["", "m", "Ki", "G"])),
            st.integers(0, 1000),
        )
    )
)
def test_sum_is_exact(amounts: list[tuple[str, int]]) -> None:
    assert parse_quantity(sum_quantities(amounts)) == sum(
        (parse_quantity(text) * n for text, n in amounts), Decimal(0)
    )


@pytest.mark.parametrize(
    "text",
    ["1e999999", "1e99999999", "-1e-99999999", "1" * 1300 + "x", "9" * 4301, "1." + "1" * 70, "٣"],
)
def test_huge_text_is_rejected_before_its_digits_are_written_out(text: str) -> None:
    for read in (parse_quantity, canonicalize, lambda each: sum_quantities([(each, 2)])):

        def reject(times: int, read: Callable[[str], object] = read) -> None:
            # The other text is as wrong, and short.
            for each in ["1x"] * 100 + [text] * times:
                with pytest.raises(QuantityError):
                    read(each)

        assert cost_growth(reject, small=1, factor=20) < 5


@pytest.mark.parametrize("value", [1e300, -(10**70), float("inf"), float("nan"), True])
def test_number_that_is_not_a_quantity_is_rejected(value: float) -> None:
    with pytest.raises(QuantityError):
        canonicalize(value)


@pytest.mark.parametrize(
    ("written", "spelt"),
    [("8Ei", str(2**63 - 1)), ("-9Ei", str(1 - 2**63)), ("1e99", "1e99"), ("100E", "100E")],
)
def test_largest_quantities_are_formatted_as_by_kubernetes(written: str, spelt: str) -> None:
    assert canonicalize(written) == spelt


QUANTITIES = st.from_regex(PATTERN, fullmatch=True).filter(lambda text: len(text) <= MAX_CHARS)


@given(st.lists(st.tuples(QUANTITIES | st.text(max_size=80), st.integers(0, 10_000))))
def test_every_text_is_either_a_quantity_or_rejected(amounts: list[tuple[str, int]]) -> None:
    with suppress(QuantityError):
        sum_quantities(amounts)
    for text, _ in amounts:
        with suppress(QuantityError):
            assert canonicalize(canonicalize(text)) == canonicalize(text)
