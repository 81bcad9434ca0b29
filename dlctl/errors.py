"""The root of dlctl's errors, and those that belong to no layer.

A wait (a quota, a name held by another, a terminating pod) is a return value, not an error.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

# The numbers of an OSError from a disk without space, or a user without any left.
DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

# The longest message of an event that the API server accepts. Messages of conditions have the same
# limit: they quote schedulers, webhooks and kubelets, which quote text of tenants.
MAX_MESSAGE_CHARS: Final = 1024
# The longest reason of an event that it accepts; reasons of kubelets and Jobs are far shorter.
MAX_REASON_CHARS: Final = 128
# A value in a message.
_MAX_VALUE_CHARS: Final = 40


class DlctlError(Exception):
    """Anything that dlctl itself raises on purpose."""


class ConfigError(DlctlError):
    """A setting is unknown, malformed or contradicts another; the program ends with exit code 2."""


class TerminalError(DlctlError):
    """Trying again without a change from outside cannot help: the key is not requeued."""


class InvalidJobError(TerminalError):
    """A job is invalid; ``field`` is a path such as ``spec.replicaSpecs[0]``.

    The message names the field and the fix, because it ends up in the job's status and an event.
    It is as long as an event takes: names of fields are the user's, too.
    """

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(truncated(f"{truncated(field, MAX_MESSAGE_CHARS // 4)}: {message}"))
        self.field = field


@contextmanager
def config_errors(subject: str) -> Iterator[None]:
    """Raise what the system refuses in the block as a ConfigError about its subject."""
    try:
        yield
    except FileExistsError as error:
        # Of a directory to be made: one that is there is taken.
        raise ConfigError(f"{subject}: Not a directory") from error
    except OSError as error:
        raise ConfigError(f"{subject}: {error.strerror}") from error


def describe(error: BaseException) -> str:
    """Return the message of an error, or its class: timeouts have no message of their own."""
    return str(error) or type(error).__name__


def counted(count: int, noun: str) -> str:
    """Return a number with the noun that it counts, in the plural unless it is one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def quoted(value: Any) -> str:
    """Return a user's value, as decoded from JSON, as a message quotes it: its beginning."""
    text = ""
    for piece in _repr_pieces(value):
        text += piece
        if len(text) > _MAX_VALUE_CHARS:
            # The whole value may be a megabyte.
            break
    return truncated(text, _MAX_VALUE_CHARS)


def _repr_pieces(value: Any) -> Iterator[str]:
    """Yield the text of a value, as ``repr`` has it, a small piece at a time."""
    match value:
        case dict():
            yield "{"
            for index, (name, item) in enumerate(value.items()):
                yield ", " if index else ""
                yield from _repr_pieces(name)
                yield ": "
                yield from _repr_pieces(item)
            yield "}"
        case list():
            yield "["
            for index, item in enumerate(value):
                yield ", " if index else ""
                yield from _repr_pieces(item)
            yield "]"
        case str():
            yield repr(value[: _MAX_VALUE_CHARS + 1])
        case _:
            yield repr(value)


def truncated(text: str, chars: int = MAX_MESSAGE_CHARS) -> str:
    """Return the text, or its beginning and three dots, in at most that many characters."""
    return text if len(text) <= chars else f"{text[: chars - 3]}..."
