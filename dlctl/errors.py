"""The root of dlctl's errors, and those that belong to no layer.

A wait (a quota, a name held by another, a terminating pod) is a return value, not an error.
"""

from typing import Final

# What the API server takes as the message of an event.
MAX_QUOTED_CHARS: Final = 1024


class DlctlError(Exception):
    """Anything that dlctl itself raises on purpose."""


class ConfigError(DlctlError):
    """A setting is unknown, malformed or contradicts another; the program ends with exit code 2."""


class TerminalError(DlctlError):
    """Trying again without a change from outside cannot help: the key is not requeued."""


class InvalidJobError(TerminalError):
    """A job asks for what cannot be; ``field`` is a path such as ``spec.replicaSpecs[0]``.

    The message names the field and the fix, because it ends up in the job's status and an event.
    It is as long as an event takes: names of fields are the user's, too.
    """

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(truncated(f"{truncated(field, MAX_QUOTED_CHARS // 4)}: {message}"))
        self.field = field


def quoted(value: object) -> str:
    """Return a user's value as a message quotes it."""
    return truncated(repr(value), 40)


def truncated(text: str, chars: int = MAX_QUOTED_CHARS) -> str:
    """Return the text, or its beginning and three dots, in at most that many characters."""
    return text if len(text) <= chars else f"{text[: chars - 3]}..."
