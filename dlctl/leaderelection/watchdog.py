"""What ends a process that cannot end itself any more. It rests on nothing that could hang.

Not on an event loop, not on a thread that needs the interpreter's lock, not on a log stream that
takes what is written to it.
"""

import faulthandler
import os
from typing import Protocol


class Watchdog(Protocol):
    """Ends the process unless it is told in time not to."""

    def arm(self, seconds: float) -> None:
        """End the process after so many seconds from now; only the last call counts."""
        ...

    def disarm(self) -> None:
        """Let the process live."""
        ...


class ProcessWatchdog:
    """Ends this process with exit code 1, and writes to stderr where each thread was.

    The timer is a thread of faulthandler's, which is C and calls ``_exit``: a signal would not do,
    since the first process of a container ignores those it has no handler for. There is one such
    timer per process.
    """

    def __init__(self) -> None:
        self._out = _nonblocking_stderr()

    def arm(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(max(seconds, 0.001), exit=True, file=self._out)

    def disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def _nonblocking_stderr() -> int:
    """Open stderr once more, so that a pipe that nobody reads does not keep us from exiting.

    The flag belongs to what was opened: set on stderr itself, it would be set for all who share it.
    """
    try:
        return os.open("/proc/self/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        # A socket, or another system: better without last words than without an end.
        return os.open(os.devnull, os.O_WRONLY)
