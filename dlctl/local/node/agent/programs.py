"""Execute a program in a forked process, and interpret its exit status and failures.

Shared by containers and exec'd commands; the namespaces are chosen before.
"""

import errno
import fcntl
import os
import shutil
import signal
import termios
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NoReturn

# The part of a script's first line that Linux reads.
_FIRST_LINE_BYTES: Final = 256


def failure(error: OSError | ValueError) -> bytes:
    """Return why the program was not executed, for the pipe that a successful start closes.

    A ``ValueError`` is what Python raises for words that no program can get, such as one with a
    null character.
    """
    if isinstance(error, ValueError):
        return str(error).encode(errors="replace")
    reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return reason.encode(errors="replace")


def exit_code(status: int) -> int:
    """Return the exit code that a shell shows for the status of a reaped process."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def join_groups(files: Iterable[str]) -> None:
    """Move this process into control groups, where the machine allows not only to create them."""
    for file in files:
        with suppress(OSError), open(file, "wb", buffering=0) as joined:
            joined.write(b"0")


def execute(
    argv: list[str],
    env: Mapping[str, str],
    cwd: str,
    streams: tuple[int | None, int, int],
    *,
    terminal: bool = False,
) -> NoReturn:
    """Become the program, in its own session; without stdin it reads nothing."""
    os.setsid()
    stdin, stdout, stderr = streams
    os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if terminal:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    os.chdir(cwd)
    os.umask(0o022)
    # Ignored signals stay ignored across exec: SIGPIPE in Python; SIGINT in background processes of
    # a shell, such as dlctl.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if not argv[0]:
        raise FileNotFoundError(errno.ENOENT, "the command is empty")
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        # Name the requested program, not the last place on PATH that was searched.
        reason = _missing_interpreter(argv[0], env) if error.errno == errno.ENOENT else ""
        raise OSError(error.errno, reason or error.strerror, argv[0]) from None


def _missing_interpreter(program: str, env: Mapping[str, str]) -> str:
    """Return why a script that is there was not found; empty if it is not there."""
    path = program if "/" in program else shutil.which(program, path=env.get("PATH"))
    first = b""
    with suppress(OSError), open(path or "", "rb") as script:
        first = script.readline(_FIRST_LINE_BYTES)
    words = first.removeprefix(b"#!").strip(b" \t\n").split(maxsplit=1)
    if not (first.startswith(b"#!") and words):
        return ""
    carriage_return = first.endswith(b"\r\n")
    name = words[0].decode(errors="replace")
    ends = "; its lines end as on Windows" if carriage_return else ""
    return f"its interpreter {name} is not on this machine{ends}"
