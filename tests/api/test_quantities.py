import time
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.quantities import MAX_CHARS, PATTERN, QuantityError, amount, canonical, total


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
def test_amount_has_one_spelling(written: str | float, spelt: str) -> None:
    assert canonical(written) == spelt


@pytest.mark.parametrize("text", ["", "1x", "a", "1 Gi", "--1", "1.2.3"])
def test_other_text_is_no_amount(text: str) -> None:
    with pytest.raises(QuantityError):
        amount(text)


@given(st.integers(0, 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_canonical_spelling_means_the_same_and_is_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"

    assert amount(canonical(text)) == amount(text)
    assert canonical(canonical(text)) == canonical(text)
    assert amount("1") == Decimal(1)


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
def test_sum_is_spelt_as_its_first_part_is(amounts: list[tuple[str, int]], sum_: str) -> None:
    assert total(amounts) == sum_


@given(
    st.lists(
        st.tuples(
            st.builds("{}{}".format, st.integers(0, 10**6), st.sampled_from(["", "m", "Ki", "G"])),
            st.integers(0, 1000),
        )
    )
)
def test_sum_is_exact(amounts: list[tuple[str, int]]) -> None:
    assert amount(total(amounts)) == sum((amount(text) * n for text, n in amounts), Decimal(0))


@pytest.mark.parametrize(
    "text",
    ["1e999999", "1e99999999", "-1e-99999999", "1" * 1300 + "x", "9" * 4301, "1." + "1" * 70, "٣"],
)
def test_text_beyond_all_bounds_is_refused_at_once(text: str) -> None:
    for read in (amount, canonical, lambda each: total([(each, 2)])):
        started = time.thread_time()
        with pytest.raises(QuantityError):
            read(text)
        assert time.thread_time() - started < 0.05


@pytest.mark.parametrize("value", [1e300, -(10**70), float("inf"), float("nan"), True])
def test_number_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(QuantityError):
        canonical(value)


@pytest.mark.parametrize(
    ("written", "spelt"),
    [("8Ei", str(2**63 - 1)), ("-9Ei", str(1 - 2**63)), ("1e99", "1e99"), ("100E", "100E")],
)
def test_largest_amounts_are_spelt_as_kubernetes_does(written: str, spelt: str) -> None:
    assert canonical(written) == spelt


AMOUNTS = st.from_regex(PATTERN, fullmatch=True).filter(lambda text: len(text) <= MAX_CHARS)


@given(st.lists(st.tuples(AMOUNTS | st.text(max_size=80), st.integers(0, 10_000))))
def test_amounts_are_read_or_refused_and_nothing_else(amounts: list[tuple[str, int]]) -> None:
    with suppress(QuantityError):
        total(amounts)
    for text, _ in amounts:
        with suppress(QuantityError):
            assert canonical(canonical(text)) == canonical(text)
