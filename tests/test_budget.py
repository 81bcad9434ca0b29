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


@pytest.mark.parametrize(
    ("budget_s", "outcomes"), [("60", {"passed": 40}), ("-1", {"passed": 1, "skipped": 39})]
)
def test_tests_beyond_the_budget_are_skipped_except_the_first(
    budget_s: str, outcomes: dict[str, int], pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(_SUITE)
    result = pytester.runpytest_inprocess("-p", "tests.support.budget", f"--budget-s={budget_s}")
    found = result.parseoutcomes()
    assert {name: found[name] for name in outcomes} == outcomes


def test_order_follows_from_the_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_SUITE)
    first, again, other = (_order(pytester, seed) for seed in ("aa", "aa", "bb"))
    assert first == again
    assert first != other
    assert sorted(first) == sorted(other)


def test_each_seed_takes_its_share_in_the_given_order(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_SUITE)
    whole = _order(pytester, "aa")
    taken = [_order(pytester, str(seed), "--share", "0.6") for seed in range(12)]
    assert {len(tests) for tests in taken} == {24}
    assert all(tests == sorted(tests, key=_number) for tests in taken)
    assert {test for tests in taken for test in tests} == set(whole)


def _number(test: str) -> int:
    return int(test.partition("[")[2].rstrip("]"))


def _order(pytester: pytest.Pytester, seed: str, *given: str) -> list[str]:
    given = given or ("--budget-s", "60")
    options = ("-p", "tests.support.budget", *given, "--order-seed", seed)
    result = pytester.runpytest_inprocess("-v", *options)
    return [line.split(" ")[0] for line in result.outlines if "::test_something" in line]
