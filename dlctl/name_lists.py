"""Lists of names and messages as text, the first few of many. Pure."""

from collections.abc import Sequence
from typing import Final

_MAX_SHOWN: Final = 3


def first_names(
    names: Sequence[str], max_shown: int = _MAX_SHOWN, *, count: int | None = None
) -> str:
    """Return the first names and the number of the others: ``a, b, c and 4 more``.

    ``count`` is the number of all names if ``names`` holds only the first of them.
    """
    shown = names[:max_shown]
    more = (len(names) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def first_messages(messages: Sequence[str]) -> str:
    """Return the first messages and the number of the others: ``a; b; c; and 4 more``."""
    more = len(messages) - _MAX_SHOWN
    return "; ".join(messages[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")
