"""Where log records go and what they look like: one JSON object per line, or text for a terminal.

Messages are constants and values come in ``extra``; the names of the common ones are fixed here,
so that a search for ``job`` finds everything about it. Nothing here filters secrets: they must
not be passed.
"""

import contextvars
import datetime
import enum
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TextIO

# Fields of the work at hand, put on every record that is written in its course.
CONTROLLER: Final = "controller"
RECONCILE_ID: Final = "reconcile_id"
OBJECT: Final = "object"
# Values that many messages carry.
KEY: Final = "key"
ERROR: Final = "error"
RETRY_S: Final = "retry_s"

_fields: contextvars.ContextVar[Mapping[str, object]] = contextvars.ContextVar("log fields")

# What a bare record has; all else on it came in by ``extra``.
_STANDARD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}


class LogFormat(enum.StrEnum):
    """How records are written: for a collector of logs, or for people."""

    JSON = "json"
    CONSOLE = "console"


def current_fields() -> Mapping[str, object]:
    """Return the fields that a record written here and now would get."""
    return _fields.get({})


@contextmanager
def log_fields(**fields: object) -> Iterator[None]:
    """Put the fields on every record of this task, and of those it starts, within the block."""
    token = _fields.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def configure(stream: TextIO, *, level: str = "info", format_: LogFormat = LogFormat.JSON) -> None:
    """Send all records at or above the level to the stream, instead of where they went before."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_FORMATTERS[format_]())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def _values(record: logging.LogRecord) -> dict[str, Any]:
    extra = {
        name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES
    }
    return {**current_fields(), **extra}


def _time(record: logging.LogRecord) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(record.created, datetime.UTC)


class JsonFormatter(logging.Formatter):
    """One JSON object per record; a value that JSON has no word for is written as its ``str``."""

    def format(self, record: logging.LogRecord) -> str:
        head: dict[str, object] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # What identifies the record cannot be overwritten by a value of the same name.
        entry = {**head, **_values(record), **head}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


class ConsoleFormatter(logging.Formatter):
    """Time, level, message, then ``name=value`` pairs; tracebacks as Python prints them."""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_time(record):%H:%M:%S} {record.levelname:<7} {record.getMessage()}"
        pairs = [f"{name}={_quoted(value)}" for name, value in _values(record).items()]
        line = "  ".join([head, " ".join(pairs)]) if pairs else head
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _quoted(value: object) -> str:
    text = str(value)
    # Also where a line break would let a value look like a record of its own.
    return json.dumps(text, ensure_ascii=False) if not text.isprintable() or " " in text else text


_FORMATTERS: Final[Mapping[LogFormat, type[logging.Formatter]]] = {
    LogFormat.JSON: JsonFormatter,
    LogFormat.CONSOLE: ConsoleFormatter,
}
