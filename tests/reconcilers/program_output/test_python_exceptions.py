"""Exceptions at the ends of tracebacks, and what they count as."""

import pytest

from dlctl.api.status.verdict import Cause
from dlctl.reconcilers.program_output.log_classes import Weight
from dlctl.reconcilers.program_output.log_text import log_lines
from dlctl.reconcilers.program_output.python_exceptions import python_exceptions
from tests.reconcilers.program_output import outputs
from tests.reconcilers.program_output.outputs import raised, torchrun

# As PyTorch's data loaders often have it at the end of a process.
IGNORED = "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "train.py", line 4, in main
  |     async with asyncio.TaskGroup() as group:
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "train.py", line 1, in load
    |     raise ValueError("x")
    | ValueError: x
    +---------------- 2 ----------------
    | OSError: y
    +------------------------------------
goes on
"""


def texts(output: str) -> list[str]:
    return [each.text for each in python_exceptions(log_lines(output))]


@pytest.mark.parametrize(
    ("output", "found"),
    [
        pytest.param("step 3\nloss: 0.1\nINFO: done\n", [], id="none"),
        pytest.param("WARNING: ValueErrors are ignored\n", [], id="text about errors"),
        pytest.param("I caught ValueError: x\n", [], id="in a sentence"),
        pytest.param(raised("ValueError: x"), ["ValueError: x"], id="with text"),
        pytest.param(raised("StopIteration"), ["StopIteration"], id="name without Error"),
        pytest.param("StopIteration\n", [], id="name without traceback"),
        pytest.param("MeanSquaredError: 0.034\nTypeError: 1e-3\n", [], id="a metric"),
        pytest.param(
            raised("KeyError: 'a'")
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + raised("RuntimeError: b"),
            ["KeyError: 'a'", "RuntimeError: b"],
            id="chain",
        ),
        pytest.param(
            raised("ValueError: x") + IGNORED + raised("AssertionError: not the parent"),
            ["ValueError: x"],
            id="ignored at the end",
        ),
        pytest.param(
            IGNORED
            + raised("KeyError: 'a'")
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + raised("OSError: b")
            + raised("ValueError: x"),
            ["ValueError: x"],
            id="ignored chain before the end",
        ),
        pytest.param(
            "Error in atexit._run_exitfuncs:\n" + raised("OSError: b"), [], id="ignored at exit"
        ),
        pytest.param(
            "Exception ignored while calling deallocator <function A.__del__ at 0x7f>:\n"
            + raised("OSError: b"),
            [],
            id="ignored by Python 3.14",
        ),
        pytest.param(
            IGNORED + raised("ValueError: x", tag="[rank1]: "),
            ["ValueError: x"],
            id="of another process than the ignored one",
        ),
        pytest.param(
            IGNORED + "RuntimeError: loop is closed\nValueError: x\n",
            ["ValueError: x"],
            id="ignored without a traceback",
        ),
        pytest.param(
            "Exception in thread Thread-1:\n" + raised("ValueError: x"),
            ["ValueError: x"],
            id="of a thread",
        ),
        pytest.param(GROUP, ["ValueError: x", "OSError: y"], id="group"),
        pytest.param(
            "".join(GROUP.splitlines(keepends=True)[-5:]), ["OSError: y"], id="end of a group"
        ),
        pytest.param(GROUP + "  | TypeError\n", ["ValueError: x", "OSError: y"], id="a table"),
        pytest.param(torchrun(1, 3), [], id="torchrun's own"),
        pytest.param(torchrun(1, 1, traceback="ValueError: x"), ["ValueError: x"], id="recorded"),
        pytest.param(outputs.horovodrun("1"), [], id="horovodrun's own"),
        pytest.param(raised("SystemExit: 3"), [], id="an exit"),
        pytest.param(
            raised("E: x", tag="[default0]:[rank8]: "), ["E: x"], id="under torchrun's --tee"
        ),
    ],
)
def test_last_lines_of_tracebacks_are_found(output: str, found: list[str]) -> None:
    assert texts(output) == found


@pytest.mark.parametrize(
    ("output", "cause", "weight"),
    [
        (raised("ValueError: x"), Cause.USER_CODE, Weight.CAUSE),
        (outputs.CUDA_OOM, Cause.OUT_OF_MEMORY, Weight.CAUSE),
        (outputs.DEVICE_ASSERT, Cause.USER_CODE, Weight.CAUSE),
        (outputs.ECC, Cause.HARDWARE, Weight.CAUSE),
        (outputs.ILLEGAL_ACCESS, Cause.USER_CODE, Weight.AMBIGUOUS),
        (raised("TimeoutError: x"), Cause.UNKNOWN, Weight.AMBIGUOUS),
        (outputs.NCCL_REMOTE, Cause.UNKNOWN, Weight.COLLATERAL),
        (outputs.NCCL_SYSTEM, Cause.UNKNOWN, Weight.COLLATERAL),
        (outputs.HOROVOD_PEER, Cause.UNKNOWN, Weight.COLLATERAL),
        (outputs.SIGNALLED, Cause.UNKNOWN, Weight.COLLATERAL),
    ],
)
def test_exception_counts_as_its_text_and_type_say(
    output: str, cause: Cause, weight: Weight
) -> None:
    (found,) = python_exceptions(log_lines(output))
    assert (found.cause, found.weight) == (cause, weight)


def test_hardware_error_behind_an_ambiguous_one_is_found() -> None:
    output = raised("RuntimeError: NCCL error: unhandled cuda error\nuncorrectable ECC error")
    (found,) = python_exceptions(log_lines(output))
    assert found.cause is Cause.HARDWARE


def test_output_of_another_process_does_not_change_an_exception() -> None:
    output = raised("ValueError: x", tag="[rank1]: ") + outputs.GLOO_CLOSED
    first, second = python_exceptions(log_lines(output))
    assert (first.weight, first.rank) == (Weight.CAUSE, 1)
    assert (second.weight, second.rank) == (Weight.COLLATERAL, None)
