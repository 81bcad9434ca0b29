"""The exit-code table, row by row, and what is said of the codes to users."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.exitcodes import ExitClass, RetryRule, meaning

READERS = [RetryRule.TABLE, RetryRule.TABLE_AND_SIGNALS]


@pytest.mark.parametrize("rule", RetryRule)
def test_zero_is_success(rule: RetryRule) -> None:
    assert rule.exit_class(0) is ExitClass.SUCCESS


@pytest.mark.parametrize("rule", READERS)
@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 139])
def test_listed_code_is_permanent_where_the_table_is_read(code: int, rule: RetryRule) -> None:
    assert rule.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize("rule", READERS)
@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_listed_code_is_retryable_where_the_table_is_read(code: int, rule: RetryRule) -> None:
    assert rule.exit_class(code) is ExitClass.RETRYABLE


@pytest.mark.parametrize("rule", [*READERS, RetryRule.SIGNALS])
@pytest.mark.parametrize("code", [3, 42, 125])
def test_other_code_below_the_signals_is_permanent(code: int, rule: RetryRule) -> None:
    assert rule.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize("code", [129, 134, 255, -1])
def test_other_code_above_the_signals_is_what_the_rule_says(code: int) -> None:
    assert RetryRule.TABLE_AND_SIGNALS.exit_class(code) is ExitClass.RETRYABLE
    assert RetryRule.TABLE.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize(
    ("code", "class_"),
    [(127, ExitClass.PERMANENT), (128, ExitClass.RETRYABLE), (139, ExitClass.RETRYABLE)],
)
def test_kubeflows_split_is_at_128_and_knows_no_exceptions(code: int, class_: ExitClass) -> None:
    assert RetryRule.SIGNALS.exit_class(code) is class_


@given(code=st.integers().filter(bool))
def test_rules_that_read_no_code_treat_all_failures_alike(code: int) -> None:
    assert RetryRule.ALL.exit_class(code) is ExitClass.RETRYABLE
    assert RetryRule.NONE.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(127, "not found", id="listed"),
        pytest.param(130, "SIGINT", id="signal by its name"),
        pytest.param(134, "SIGABRT", id="signal that the table does not list"),
        pytest.param(42, "the program's own", id="code that means nothing by itself"),
    ],
)
def test_meaning_says_what_a_code_stands_for(code: int, said: str) -> None:
    assert said in meaning(code)


@given(code=st.integers())
def test_every_code_has_a_class_and_a_meaning(code: int) -> None:
    assert all(rule.exit_class(code) in ExitClass for rule in RetryRule)
    assert meaning(code)
