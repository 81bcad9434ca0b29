"""Parts of messages on what a job waits for: times, and messages of other programs. Pure."""

import datetime
from typing import Final

from dlctl.errors import truncated

_MAX_DETAIL_CHARS: Final = 600


def detail_of(message: str | None, max_chars: int = _MAX_DETAIL_CHARS) -> str:
    """Return a message of another program as a part of a sentence."""
    return truncated((message or "").strip().rstrip("."), max_chars)


def utc(time: datetime.datetime) -> str:
    """Return the time in UTC, to the second."""
    return f"{time.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
