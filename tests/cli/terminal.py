"""A terminal for whole runs: a pseudo-terminal, and what a person would see on it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pyte


@attrs.define
class Terminal:
    """The program's terminal; lines that have scrolled out of it are still there."""

    columns: int
    rows: int = 24
    screen: pyte.HistoryScreen = attrs.field(init=False)
    # The numbers of bytes and of control sequences seen.
    written: bytearray = attrs.field(init=False, factory=bytearray)

    def __attrs_post_init__(self) -> None:
        self.screen = pyte.HistoryScreen(self.columns, self.rows, history=100_000)
        self._stream = pyte.ByteStream(self.screen)

    _stream: pyte.ByteStream = attrs.field(init=False)

    def feed(self, data: bytes) -> None:
        self.written += data
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """Return all lines, from the first that scrolled out, without trailing space."""
        gone = [
            "".join(line[column].data for column in range(self.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return [*gone, *(line.rstrip() for line in self.screen.display)]


def run_in_terminal(
    *arguments: str,
    columns: int = 120,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
    seen: Callable[[Terminal, "subprocess.Popen[bytes]"], None] = lambda terminal, process: None,
) -> tuple[int, Terminal]:
    """Run ``dlctl`` to its end; ``seen`` is called after each portion of its output."""
    terminal = Terminal(columns, rows)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    given = {"TERM": "xterm-256color", **(env or {})}
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "dlctl", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=kept | given,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        os.close(theirs)
        while data := _read(ours):
            terminal.feed(data)
            seen(terminal, process)
    os.close(ours)
    return process.returncode, terminal


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        # All programs at the other end have terminated.
        return b""
