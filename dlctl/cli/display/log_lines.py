"""Lines of program output for display: whole lines from chunks of bytes, and a prefix for each.

Independent of where the bytes come from. Nothing that a program writes reaches the terminal as a
control sequence.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from rich.console import Console

# A longer line is shown in pieces, so that a program that prints dots cannot fill the memory.
LINE_BYTES: Final = 1 << 14
_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow")
# Sequences of terminals as ECMA-48 has them: CSI, strings up to their terminator, and short ones.
_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTINUATION: Final = 0x80


@attrs.define
class LineSplitter:
    """Splits the output of one program; of a progress bar it keeps the newest state alone."""

    _rest: bytes = b""

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that end in the chunk, for display."""
        *whole, rest = (self._rest + chunk).split(b"\n")
        pieces = [piece for line in whole for piece in _pieces(_newest_state(line))]
        *full, self._rest = _pieces(_newest_state(rest))
        return list(map(displayable, (*pieces, *full)))

    @property
    def unfinished(self) -> str:
        """Return the line that has not ended, such as a progress bar."""
        return displayable(self._rest)

    def finish(self) -> list[str]:
        """Return the unfinished line, if there is one, as the last."""
        last, self._rest = self._rest, b""
        return [displayable(last)] if last.strip() else []


def displayable(line: bytes) -> str:
    """Return a line as one line of text without control sequences."""
    text = line.rstrip(b"\r").decode(errors="replace")
    if text.isprintable():
        return text
    text = _SEQUENCES.sub("", text).expandtabs()
    return "".join(char if char.isprintable() else " " for char in text)


@attrs.frozen
class LogPrefixes:
    """The prefix of each replica's lines, as wide as the widest; coloured on a terminal."""

    by_name: Mapping[str, str]

    @classmethod
    def of(cls, names: Iterable[str], console: "Console | None" = None) -> "LogPrefixes":
        """Return the prefixes of replicas; the console decides about colours."""
        names = list(names)
        width = max(map(len, names), default=0)
        padded = {name: f"{name:<{width}} | " for name in names}
        if console is None:
            return cls(padded)
        return cls(
            {
                name: _coloured(console, prefix, _COLOURS[index % len(_COLOURS)])
                for index, (name, prefix) in enumerate(padded.items())
            }
        )

    def lines(self, name: str, lines: Iterable[str]) -> str:
        """Return the lines with their prefix, each with its end."""
        prefix = self.by_name.get(name) or f"{name} | "
        return "".join([f"{prefix}{line}\n" for line in lines])


def _coloured(console: "Console", text: str, colour: str) -> str:
    # Commands that show no colours need no terminal library.
    from rich.text import Text

    with console.capture() as captured:
        console.print(Text(text, style=colour), end="", soft_wrap=True)
    return captured.get()


def _newest_state(line: bytes) -> bytes:
    """Return what a terminal would show of a line that a program has overwritten."""
    if b"\r" not in line:
        return line
    return line.rstrip(b"\r").rpartition(b"\r")[2] + (b"\r" if line.endswith(b"\r") else b"")


def _pieces(line: bytes) -> Iterable[bytes]:
    while len(line) > LINE_BYTES:
        end = _piece_end(line)
        yield line[:end]
        line = line[end:]
    yield line


def _piece_end(line: bytes) -> int:
    """Return where to cut a long line: not within a character."""
    end = LINE_BYTES
    while end > LINE_BYTES - 3 and line[end] & 0xC0 == _CONTINUATION:
        end -= 1
    return end
