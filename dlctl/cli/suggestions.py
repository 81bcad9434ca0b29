"""The known name that a user may have meant by an unknown one."""

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that is most like a name, in any case; empty if none is like it.

    The cutoff is the lowest similarity, from 0 to 1.
    """
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?`` for the closest known name; empty without one."""
    close = closest(name, known)
    return f"; did you mean {close}?" if close else ""
