"""The exit-code table, row by row, and what is said of the codes to users."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.exitcodes import ExitClass, exit_class, meaning


@pytest.mark.parametrize("signals", [ExitClass.PERMANENT, ExitClass.RETRYABLE])
def test_zero_is_success(signals: ExitClass) -> None:
    assert exit_class(0, signals=signals) is ExitClass.SUCCESS


@pytest.mark.parametrize("signals", [ExitClass.PERMANENT, ExitClass.RETRYABLE])
@pytest.mark.parametrize("code", [1, 2, 126, 127, 128, 139])
def test_listed_code_is_permanent_in_every_dialect(code: int, signals: ExitClass) -> None:
    assert exit_class(code, signals=signals) is ExitClass.PERMANENT


@pytest.mark.parametrize("signals", [ExitClass.PERMANENT, ExitClass.RETRYABLE])
@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_listed_code_is_retryable_in_every_dialect(code: int, signals: ExitClass) -> None:
    assert exit_class(code, signals=signals) is ExitClass.RETRYABLE


@pytest.mark.parametrize("code", [3, 42, 125])
def test_other_code_below_the_signals_is_permanent(code: int) -> None:
    assert exit_class(code, signals=ExitClass.RETRYABLE) is ExitClass.PERMANENT


@pytest.mark.parametrize("code", [129, 134, 255, -1])
def test_other_code_above_the_signals_is_what_the_dialect_says(code: int) -> None:
    assert exit_class(code, signals=ExitClass.RETRYABLE) is ExitClass.RETRYABLE
    assert exit_class(code, signals=ExitClass.PERMANENT) is ExitClass.PERMANENT


def test_unlisted_signal_is_permanent_by_default() -> None:
    assert exit_class(129) is ExitClass.PERMANENT


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
    assert exit_class(code) in ExitClass
    assert meaning(code)
