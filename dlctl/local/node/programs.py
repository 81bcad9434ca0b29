"""From a forked process to a program in its place, and what its end and its failures mean.

What containers run and what is run beside them begins here alike; where it runs is decided before.
"""

import errno
import fcntl
import os
import signal
import termios
from collections.abc import Mapping
from typing import Final, NoReturn

import msgspec

_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_CANNOT_START: Final = 128


class StartFailure(msgspec.Struct, frozen=True):
    """Why the program was not executed, told through a pipe that a good start just closes."""

    error: str
    exit_code: int


def failure(error: OSError) -> StartFailure:
    """Return what to tell, with the exit code that a shell would show."""
    code = {
        errno.ENOENT: _NOT_FOUND,
        errno.EACCES: _NOT_EXECUTABLE,
        errno.ENOEXEC: _NOT_EXECUTABLE,
    }.get(error.errno or 0, _CANNOT_START)
    text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return StartFailure(error=text, exit_code=code)


def exit_code(status: int) -> int:
    """Return what a shell shows for the status of a process that was waited for."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def execute(
    argv: list[str],
    env: Mapping[str, str],
    cwd: str,
    streams: tuple[int | None, int, int],
    *,
    terminal: bool = False,
) -> NoReturn:
    """Become the program, in a session of its own; without an input it reads nothing."""
    os.setsid()
    stdin, stdout, stderr = streams
    os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if terminal:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    os.chdir(cwd)
    os.umask(0o022)
    # What is ignored stays so across exec: SIGPIPE by Python; SIGINT by a shell, of what it runs
    # in the background, such as dlctl.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        # To name what was asked for, and not the last place on PATH where it was looked for.
        raise OSError(error.errno, error.strerror, argv[0]) from None
