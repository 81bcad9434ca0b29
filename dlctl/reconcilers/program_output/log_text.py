"""Lines of logs, bounded and cleaned."""

import re
from collections.abc import Sequence
from typing import Final

import attrs

# The end of a log is read, at most this long.
MAX_LOG_CHARS: Final = 64 * 1024
_MAX_LINES: Final = 2_000
_MAX_LINE_CHARS: Final = 1_000
# torchrun puts one before that of torch.
_MAX_TAGS: Final = 3
_ANSI: Final = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
# Control characters, and those that change the direction of text.
_UNPRINTABLE: Final = dict.fromkeys(
    (*range(9), 0xB, 0xC, *range(0xE, 0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, 0x2028, 0x2029,
     *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
)  # fmt: skip
# Open MPI repeats its tag before each part of a line that is written in parts.
_REPEATED_TAG: Final = re.compile(r"\[\d{1,7},\d{1,7}\]<std(?:err|out)>: ?")
# The tags of torch, torchrun, Open MPI's --tag-output and horovodrun; the last number is the rank.
_TAG: Final = re.compile(
    r"\[(?P<by>rank|default|)(?:\d{1,7},)?(?P<rank>\d{1,7})\]"
    r"(?P<stream><std(?:err|out)>)?:? ?"
)


@attrs.frozen
class LogLine:
    """One line, without the tag that a launcher has put before it."""

    text: str
    # The rank of the process that wrote it, if the tag names it.
    rank: int | None = None


def log_lines(text: str) -> Sequence[LogLine]:
    """Return the last lines of a log."""
    return [_line(line) for line in _cleaned(text).split("\n")[-_MAX_LINES:]]


def printable(text: str, limit: int) -> str:
    """Return the beginning of a text as one that can be shown: without control characters."""
    shown = _cleaned(text[: 4 * limit]).strip()
    return shown if len(shown) <= limit else f"{shown[: limit - 3].rstrip()}..."


def _cleaned(text: str) -> str:
    bounded = _ANSI.sub("", text[-MAX_LOG_CHARS:])
    # A lone carriage return begins a progress bar's next state.
    return bounded.replace("\r\n", "\n").replace("\r", "\n").translate(_UNPRINTABLE)


def _line(text: str) -> LogLine:
    line = LogLine(text[:_MAX_LINE_CHARS])
    for _ in range(_MAX_TAGS):
        tag = _TAG.match(line.text)
        if tag is None or not (tag["by"] or tag["stream"]):
            break
        rest = line.text[tag.end() :]
        # torchrun's own tags have local ranks.
        rank = line.rank if tag["by"] == "default" else int(tag["rank"])
        line = LogLine(_REPEATED_TAG.sub("", rest) if tag["stream"] else rest, rank)
    return line
