"""The exit code table, row by row, and the descriptions of codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.exit_codes import ExitClass, describe_exit_code
from dlctl.api.policies.retry_policy import RetryPolicy

TABLE_POLICIES = [RetryPolicy.TABLE, RetryPolicy.TABLE_AND_SIGNALS]


@pytest.mark.parametrize("rule", RetryPolicy)
def test_zero_is_success(rule: RetryPolicy) -> None:
    assert rule.exit_class(0) is ExitClass.SUCCESS


@pytest.mark.parametrize("rule", TABLE_POLICIES)
@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 139])
def test_listed_code_is_permanent_where_the_table_is_read(code: int, rule: RetryPolicy) -> None:
    assert rule.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize("rule", TABLE_POLICIES)
@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_listed_code_is_retryable_where_the_table_is_read(code: int, rule: RetryPolicy) -> None:
    assert rule.exit_class(code) is ExitClass.RETRYABLE


@pytest.mark.parametrize("rule", [*TABLE_POLICIES, RetryPolicy.SIGNALS])
@pytest.mark.parametrize("code", [3, 42, 125])
def test_other_code_below_the_signals_is_permanent(code: int, rule: RetryPolicy) -> None:
    assert rule.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize("code", [129, 134, 255, -1])
def test_other_code_above_the_signals_follows_the_policy(code: int) -> None:
    assert RetryPolicy.TABLE_AND_SIGNALS.exit_class(code) is ExitClass.RETRYABLE
    assert RetryPolicy.TABLE.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize(
    ("code", "class_"),
    [(127, ExitClass.PERMANENT), (128, ExitClass.RETRYABLE), (139, ExitClass.RETRYABLE)],
)
def test_kubeflow_retries_every_code_from_128(code: int, class_: ExitClass) -> None:
    assert RetryPolicy.SIGNALS.exit_class(code) is class_


@given(code=st.integers().filter(bool))
def test_policies_without_table_treat_all_failures_alike(code: int) -> None:
    assert RetryPolicy.ALL.exit_class(code) is ExitClass.RETRYABLE
    assert RetryPolicy.NONE.exit_class(code) is ExitClass.PERMANENT


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(127, "not found", id="listed"),
        pytest.param(130, "SIGINT", id="signal by its name"),
        pytest.param(134, "SIGABRT", id="signal that the table does not list"),
        pytest.param(42, "program-defined", id="code that means nothing by itself"),
    ],
)
def test_description_says_what_a_code_means(code: int, said: str) -> None:
    assert said in describe_exit_code(code)


@given(code=st.integers())
def test_every_code_has_a_class_and_a_description(code: int) -> None:
    assert all(rule.exit_class(code) in ExitClass for rule in RetryPolicy)
    assert describe_exit_code(code)
