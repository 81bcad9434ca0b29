"""Continue a command in a process of its own, without the terminal."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_MAX_LINES: Final = 20
_STDIN, _STDOUT, _STDERR = 0, 1, 2


def detach(log: Path) -> Callable[[str], None]:
    """Return in a new process, whose output goes to a file; the caller's process ends here.

    It ends once the new process calls the returned function, with that text on the terminal and
    exit code 0; or if the new process ends before, with its last output and its exit code.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        sys.exit(_await(child, reading, log))
    os.close(reading)
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, _STDIN), (output, _STDOUT), (output, _STDERR)):
        os.dup2(source, target)

    def announce(text: str) -> None:
        with open(writing, "w", encoding="utf-8") as said:
            said.write(text)

    return announce


def _await(child: int, reading: int, log: Path) -> int:
    with open(reading, encoding="utf-8") as said:
        text = said.read()
    if text:
        print(text, flush=True)
        return 0
    _, status = os.waitpid(child, 0)
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_MAX_LINES:]
    print("\n".join(last), file=sys.stderr)
    return os.waitstatus_to_exitcode(status)
