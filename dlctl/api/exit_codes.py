"""What a container's exit code says: done, broken for good, or worth another try.

The table is the one that mx-operator and tf-operator shared; above it, API groups differ.
"""

import enum
import signal
from collections.abc import Mapping
from typing import Final


class ExitClass(enum.StrEnum):
    """What to do about a container that has ended."""

    SUCCESS = "success"
    PERMANENT = "permanent"
    RETRYABLE = "retryable"


# 137 and 143 are what a preempted or stopped container shows; 138 (SIGUSR1) is left to users,
# whose code may ask for a restart by it.
_CLASS_BY_CODE: Final[Mapping[int, ExitClass]] = {
    0: ExitClass.SUCCESS,
    1: ExitClass.PERMANENT,
    2: ExitClass.PERMANENT,
    126: ExitClass.PERMANENT,
    127: ExitClass.PERMANENT,
    128: ExitClass.PERMANENT,
    139: ExitClass.PERMANENT,
    130: ExitClass.RETRYABLE,
    137: ExitClass.RETRYABLE,
    138: ExitClass.RETRYABLE,
    143: ExitClass.RETRYABLE,
}
_DESCRIPTION_BY_CODE: Final[Mapping[int, str]] = {
    0: "success",
    1: "general error",
    2: "misuse of a shell built-in",
    126: "the command cannot be executed",
    127: "the command was not found",
    128: "invalid argument to exit, or the container could not start",
    137: "killed (SIGKILL): out of memory, evicted or stopped by force",
    138: "ended by SIGUSR1: user-defined, asks for a restart",
    139: "segmentation fault (SIGSEGV)",
    143: "stopped (SIGTERM)",
}
_SIGNAL_BASE: Final = 128


class RetryPolicy(enum.Enum):
    """Which failures of a replica's program are worth another try."""

    # Those that the table says; of signals that it does not name, none.
    TABLE = enum.auto()
    # Those that the table says, and all signals that it does not name.
    TABLE_AND_SIGNALS = enum.auto()
    # Every code from 128 on, as Kubeflow's ExitCode has it.
    SIGNALS = enum.auto()
    ALL = enum.auto()
    NONE = enum.auto()

    @property
    def uses_table(self) -> bool:
        """Tell whether the table has a say."""
        return self in (RetryPolicy.TABLE, RetryPolicy.TABLE_AND_SIGNALS)

    def exit_class(self, code: int) -> ExitClass:
        """Classify an exit code."""
        if code == 0:
            return ExitClass.SUCCESS
        if self.uses_table and code in _CLASS_BY_CODE:
            return _CLASS_BY_CODE[code]
        by_signal = code >= _SIGNAL_BASE or code < 0
        retried = self is RetryPolicy.ALL or (
            by_signal and self in (RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS)
        )
        return ExitClass.RETRYABLE if retried else ExitClass.PERMANENT


def describe_exit_code(code: int) -> str:
    """Say in a few words what a code means."""
    if code in _DESCRIPTION_BY_CODE:
        return _DESCRIPTION_BY_CODE[code]
    try:
        return f"ended by {signal.Signals(code - _SIGNAL_BASE).name}"
    except ValueError:
        return "an error of the program's own"
