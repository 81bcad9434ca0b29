"""Long tiers fit their time, and take other tests with each commit."""

import pytest

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

_SUITE = """
import pytest

@pytest.mark.parametrize("number", range(40))
def test_something(number):
    pass
"""


@pytest.mark.parametrize(("budget_s", "outcome"), [("60", "passed"), ("-1", "skipped")])
def test_tests_beyond_the_budget_are_skipped(
    budget_s: str, outcome: str, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(_SUITE)
    result = pytester.runpytest_inprocess("-p", "tests.support.budget", f"--budget-s={budget_s}")
    assert result.parseoutcomes()[outcome] == 40


def test_order_follows_from_the_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_SUITE)
    first, again, other = (_order(pytester, seed) for seed in ("aa", "aa", "bb"))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)


def _order(pytester: pytest.Pytester, seed: str) -> list[str]:
    options = ("-p", "tests.support.budget", "--budget-s", "60", "--order-seed", seed)
    result = pytester.runpytest_inprocess("-v", *options)
    return [line.split(" ")[0] for line in result.outlines if "::test_something" in line]
