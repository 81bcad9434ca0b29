"""Parts of messages about replicas: names, causes, times and texts of other programs. Pure."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Final

from dlctl.errors import truncated
from dlctl.reconcilers.observe import ObservedReplica

_MAX_DETAIL_CHARS: Final = 600
_MAX_LISTED: Final = 3


def some_names(names: Iterable[str]) -> str:
    """Return the first names, and how many others there are."""
    known = [name for name in dict.fromkeys(names) if name]
    if len(known) <= _MAX_LISTED:
        return ", ".join(known)
    return f"{', '.join(known[:_MAX_LISTED])} and {len(known) - _MAX_LISTED} more"


def causes(replicas: Iterable[ObservedReplica]) -> str:
    """Name the first of these replicas, with how they ended."""
    return first_messages(
        [
            f"{o.replica}: {o.termination.reason}, {o.termination.message}"
            if o.termination
            else f"{o.replica}"
            for o in replicas
        ]
    )


def first_messages(messages: Sequence[str]) -> str:
    """Join the first of some messages, with the number of the others."""
    more = len(messages) - _MAX_LISTED
    return "; ".join(messages[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")


def detail_of(message: str | None, max_chars: int = _MAX_DETAIL_CHARS) -> str:
    """Return a message of another program as a part of a sentence."""
    return truncated((message or "").strip().rstrip("."), max_chars)


def utc(time: datetime.datetime) -> str:
    """Return the time in UTC, to the second."""
    return f"{time.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
