"""Regular expressions of schemas: RE2 as on the real server, whose time is linear in the text."""

from functools import lru_cache

from dlctl.local.apiserver.schemas.cel_environment import CelError, Expression


@lru_cache(maxsize=1)
def _match() -> Expression:
    return Expression.compile("self.matches(oldSelf)")


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of the text matches; raise CelError if the pattern is malformed."""
    return _match().value(text, (pattern,)) is True


def malformed(pattern: str) -> str:
    """Return why a pattern is malformed; empty if it is not."""
    try:
        matches("", pattern)
    except CelError as error:
        return str(error)
    return ""
