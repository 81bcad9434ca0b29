"""Times as Go reads them, and its errors for others."""

import calendar
import re
from typing import Final

import msgspec

_LAYOUTS: Final = {
    "time": "2006-01-02T15:04:05Z07:00",
    "microtime": "2006-01-02T15:04:05.000000Z07:00",
}
_TWO_DIGITS: Final = "([0-9][0-9])"
# The elements of a layout, each with what it matches.
_ELEMENTS: Final = (
    ("2006", "([0-9]{4})"),
    ("-", "-"),
    ("01", _TWO_DIGITS),
    ("-", "-"),
    ("02", _TWO_DIGITS),
    ("T", "T"),
    ("15", _TWO_DIGITS),
    (":", ":"),
    ("04", _TWO_DIGITS),
    (":", ":"),
    ("05", f"{_TWO_DIGITS}(?:[.,][0-9]+)?"),
    ("Z07:00", f"(?:Z|[+-]{_TWO_DIGITS}:{_TWO_DIGITS})"),
)
_TIME: Final = re.compile("".join(pattern for _, pattern in _ELEMENTS))


def time_problem(text: str, type_: str) -> str:
    """Return Go's error for a malformed time; empty if it is valid.

    The type is ``time`` or ``microtime``, of which the fraction may have any length here.
    """
    match = _TIME.match(text)
    if match is None:
        return _mismatch(text, _LAYOUTS[type_])
    start = f"parsing time {_quoted(text)}: "
    if rest := text[match.end() :]:
        return f"{start}extra text: {_quoted(rest)}"
    year, month, day, hour, minute, second, offset_h, offset_m = map(int, match.groups("0"))
    limits = (
        # Python has no year 0.
        ("year", 0 < year),
        ("month", 0 < month <= 12),
        ("day", month > 12 or 0 < day <= calendar.monthrange(max(year, 1), month or 1)[1]),
        ("hour", hour < 24),
        ("minute", minute < 60),
        ("second", second < 60),
        ("time zone offset hour", offset_h < 24),
        ("time zone offset minute", offset_m < 60),
    )
    return next((f"{start}{name} out of range" for name, fits in limits if not fits), "")


def _mismatch(text: str, layout: str) -> str:
    """Return the error for the first element that the text lacks."""
    rest, elements = text, iter(_ELEMENTS)
    element, pattern = next(elements)
    while match := re.match(pattern, rest):
        rest = rest[match.end() :]
        element, pattern = next(elements)
    shown = f"cannot parse {_quoted(rest)} as {_quoted(element)}"
    return f"parsing time {_quoted(text)} as {_quoted(layout)}: {shown}"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
