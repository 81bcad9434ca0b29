"""The exit codes of processes, as torchrun's summary has them."""

import pytest

from dlctl.reconcilers.program_output.torchrun import recovered_exit_code
from tests.reconcilers.program_output.outputs import KEPT_BYTES, torchrun


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param("", 1, id="no summary"),
        pytest.param("exitcode  : 5 (pid: 3)", 1, id="like a summary"),
        pytest.param(torchrun(3, 1), 1, id="exception"),
        pytest.param(torchrun(3, 17), 17, id="own code"),
        pytest.param(torchrun(3, -9), 137, id="killed"),
        pytest.param(torchrun(3, -11), 139, id="crashed"),
        pytest.param(torchrun(3, -15), 143, id="stopped"),
        pytest.param(torchrun(3, -6, others=[(4, -9)]), 137, id="aborted after another's end"),
        pytest.param(torchrun(3, 3, others=[(4, 5), (5, 6)]), 3, id="first of several"),
        pytest.param(torchrun(3, -9)[-KEPT_BYTES:][-500:], 137, id="cut at the front"),
    ],
)
def test_exit_code_is_that_of_the_process_that_failed_first(message: str, code: int) -> None:
    assert recovered_exit_code(1, message) == code


def test_other_exit_codes_are_not_those_of_torchrun() -> None:
    assert recovered_exit_code(2, torchrun(3, -9)) == 2


@pytest.mark.parametrize("code", [256, 999, -128, -999, 0])
def test_code_that_no_process_can_have_is_not_recovered(code: int) -> None:
    assert recovered_exit_code(1, torchrun(3, code)) == 1
