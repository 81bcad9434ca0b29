"""Exit codes of containers: what they mean, and whether a retry may help.

The table of classes is the one that mx-operator and tf-operator shared.
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
CLASS_BY_CODE: Final[Mapping[int, ExitClass]] = {
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


def shell_exit_code(returncode: int) -> int:
    """Return the exit code that a shell shows: 128 + n for -n, which Python has for a signal."""
    return returncode if returncode >= 0 else SIGNAL_BASE - returncode


def describe_exit_code(code: int) -> str:
    """Return a short description of an exit code."""
    if code in _DESCRIPTION_BY_CODE:
        return _DESCRIPTION_BY_CODE[code]
    try:
        return f"ended by {signal.Signals(code - SIGNAL_BASE).name}"
    except ValueError:
        return "a program-defined error"
