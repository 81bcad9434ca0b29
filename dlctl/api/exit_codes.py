"""Classes of exit codes: success, permanent failure or retryable failure.

The table is the one that mx-operator and tf-operator shared; for other codes, API groups differ.
"""

import enum
import signal
from collections.abc import Mapping
from typing import Final


class ExitClass(enum.StrEnum):
    """How a terminated container is treated."""

    SUCCESS = "success"
    PERMANENT = "permanent"
    RETRYABLE = "retryable"


# Preempted or stopped containers exit with 137 or 143; 138 (SIGUSR1) is reserved for programs that
# request a restart.
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
GENERAL_ERROR: Final = "general error"
_DESCRIPTION_BY_CODE: Final[Mapping[int, str]] = {
    0: "success",
    1: GENERAL_ERROR,
    2: "wrong usage",
    126: "the command cannot be executed",
    127: "the command was not found",
    128: "invalid argument to exit, or the container could not start",
    137: "killed (SIGKILL): out of memory, evicted or force-deleted",
    138: "ended by SIGUSR1: user-defined, asks for a restart",
    139: "segmentation fault (SIGSEGV)",
    143: "stopped (SIGTERM)",
}
# A program that a signal ended has exit code 128 + n.
SIGNAL_BASE: Final = 128


class RetryPolicy(enum.Enum):
    """Which failures of a replica's program are retried."""

    # Those that the table classifies as retryable, and no other signals.
    TABLE = enum.auto()
    # Those that the table classifies as retryable, and all signals that it does not list.
    TABLE_AND_SIGNALS = enum.auto()
    # Every code from 128 on, like Kubeflow's ExitCode.
    SIGNALS = enum.auto()
    ALL = enum.auto()
    NONE = enum.auto()

    @property
    def uses_table(self) -> bool:
        """Return whether the table classifies exit codes."""
        return self in (RetryPolicy.TABLE, RetryPolicy.TABLE_AND_SIGNALS)

    @property
    def goes_by_exit_code(self) -> bool:
        """Return whether some exit codes are retried and others are not."""
        return self not in (RetryPolicy.ALL, RetryPolicy.NONE)

    @property
    def judges_init_containers(self) -> bool:
        """Return whether the exit codes of init containers count as the program's do.

        Kubeflow's ExitCode looks at the program's only, and restarts pods whose program never ran.
        """
        return self not in (RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS)

    def exit_class(self, code: int) -> ExitClass:
        """Return the class of an exit code."""
        if code == 0:
            return ExitClass.SUCCESS
        if self.uses_table and code in _CLASS_BY_CODE:
            return _CLASS_BY_CODE[code]
        by_signal = code >= SIGNAL_BASE or code < 0
        retried = self is RetryPolicy.ALL or (
            by_signal and self in (RetryPolicy.SIGNALS, RetryPolicy.TABLE_AND_SIGNALS)
        )
        return ExitClass.RETRYABLE if retried else ExitClass.PERMANENT


def describe_exit_code(code: int) -> str:
    """Return a short description of an exit code."""
    if code in _DESCRIPTION_BY_CODE:
        return _DESCRIPTION_BY_CODE[code]
    try:
        return f"ended by {signal.Signals(code - SIGNAL_BASE).name}"
    except ValueError:
        return "a program-defined error"
