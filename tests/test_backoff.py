"""How long to wait after a number of failures in a row."""

import pytest

from dlctl.backoff import Backoff, jittered


def test_delay_grows_with_each_failure_up_to_the_cap() -> None:
    backoff = Backoff(base_s=1, cap_s=10)
    assert [backoff.delay_s(n) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_without_a_failure_there_is_no_delay() -> None:
    assert Backoff(base_s=1, cap_s=10).delay_s(0) == 0


def test_thousands_of_failures_do_not_overflow() -> None:
    assert Backoff(base_s=0.005, cap_s=1000).delay_s(5001) == 1000


def test_jitter_stretches_delays_by_its_fraction_at_most() -> None:
    backoff = Backoff(base_s=4, cap_s=8, jitter=0.25)
    assert (backoff.delay_s(1, 0.0), backoff.delay_s(1, 0.5), backoff.delay_s(3, 1.0)) == (
        4,
        4.5,
        10,
    )
    assert jittered(2, 1.2, 0.5) == pytest.approx(3.2)


@pytest.mark.parametrize(
    ("base_s", "cap_s"),
    [pytest.param(0, 10, id="no base"), pytest.param(11, 10, id="base above the cap")],
)
def test_impossible_delays_are_rejected(base_s: float, cap_s: float) -> None:
    with pytest.raises(ValueError, match="base_s"):
        Backoff(base_s=base_s, cap_s=cap_s)


def test_cap_equal_to_the_base_is_a_constant_delay() -> None:
    assert [Backoff(base_s=3, cap_s=3).delay_s(n) for n in (1, 2, 3)] == [3, 3, 3]
