"""Continue a command in a process of its own, without the terminal."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dlctl.api.exit_codes import SIGNAL_BASE, shell_exit_code

_MAX_LINES: Final = 20
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def detach(log: Path) -> Callable[[str], None]:
    """Return in a new process, whose output goes to a file; the caller's process ends here.

    It ends once the new process calls the returned function, with that text on the terminal and
    exit code 0; or if the new process ends before, with its last output and its exit code: the file
    is removed then, unless it has more. Until then, a signal ends both.
    """
    reading, writing = os.pipe()
    # One right after the fork would end the caller's process alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    child = os.fork()
    if child:
        os.close(writing)
        sys.exit(_await(child, reading, log))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.close(reading)
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, _STDIN), (output, _STDOUT), (output, _STDERR)):
        os.dup2(source, target)

    def announce(text: str) -> None:
        with open(writing, "w", encoding="utf-8") as stream:
            stream.write(text)

    return announce


def _await(child: int, reading: int, log: Path) -> int:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        with open(reading, encoding="utf-8") as stream:
            text = stream.read()
    except (KeyboardInterrupt, SystemExit):
        # It is in a session of its own, which no Ctrl-C reaches.
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        log.unlink(missing_ok=True)
        raise
    if text:
        print(text, flush=True)
        return 0
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = shell_exit_code(status)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    if status < 0 or (not lines and code > SIGNAL_BASE):
        lines.append(f"dlctl: ended by {signal.Signals(code - SIGNAL_BASE).name}")
    if not lines:
        lines.append(f"dlctl: ended, and could not say why in {log}: is its disk full?")
    print("\n".join(lines[-_MAX_LINES:]), file=sys.stderr)
    if len(lines) > _MAX_LINES:
        print(f"dlctl: the log is in {log}", file=sys.stderr)
    else:
        log.unlink()
    return code
