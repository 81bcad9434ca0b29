"""Ends a process that can no longer end itself. Depends on nothing that could hang.

Not on an event loop, a thread that needs the interpreter lock, or a log stream that may block.
"""

import faulthandler
import os
from typing import Protocol


class Watchdog(Protocol):
    """Ends the process unless disarmed in time."""

    def arm(self, seconds: float) -> None:
        """End the process this many seconds from now; only the last call counts."""
        ...

    def disarm(self) -> None:
        """Cancel the end of the process."""
        ...


class ProcessWatchdog:
    """Ends this process with exit code 1, and writes the stack of each thread to stderr.

    The timer is a C thread of faulthandler that calls ``_exit``: a signal would not do, since the
    first process of a container ignores those without a handler. There is one such timer per
    process. It reads the stacks without the interpreter lock: if threads run again meanwhile, as
    after a suspension, that may end the process by SIGSEGV instead.
    """

    def __init__(self) -> None:
        self._out = _nonblocking_stderr()

    def arm(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(max(seconds, 0.001), exit=True, file=self._out)

    def disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def _nonblocking_stderr() -> int:
    """Reopen stderr without blocking, so that a pipe without a reader cannot prevent the exit.

    The flag belongs to the open file: set on stderr itself, it would affect all that share it.
    """
    try:
        return os.open("/proc/self/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        # A socket, or another system: exiting matters more than the stacks.
        return os.open(os.devnull, os.O_WRONLY)
