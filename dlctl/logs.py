"""Log output: one JSON object per line, or text for a terminal.

Messages are constants; values are passed in ``extra``. Common keys are fixed here, so that a search
for ``job`` finds everything about it. Secrets are not filtered: do not log them.
"""

import contextvars
import datetime
import enum
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TextIO

# Fields of the current reconcile, added to every record written during it.
CONTROLLER: Final = "controller"
RECONCILE_ID: Final = "reconcile_id"
OBJECT: Final = "object"
# Keys that many messages use.
KEY: Final = "key"
ERROR: Final = "error"

_fields: contextvars.ContextVar[Mapping[str, object]] = contextvars.ContextVar("log fields")

# Attributes of every record; all others come from ``extra``.
_STANDARD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}


class LogFormat(enum.StrEnum):
    """Format of records: for a log collector, or for people."""

    JSON = "json"
    CONSOLE = "console"


def current_fields() -> Mapping[str, object]:
    """Return the fields that are added to a record written now."""
    return _fields.get({})


@contextmanager
def log_fields(**fields: object) -> Iterator[None]:
    """Add the fields to every record of this task and its child tasks within the block."""
    token = _fields.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def configure(stream: TextIO, *, level: str = "info", format_: LogFormat = LogFormat.JSON) -> None:
    """Replace all handlers: write records at or above the level to the stream."""
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
    """One JSON object per record; values without a JSON type are written with ``str``."""

    def format(self, record: logging.LogRecord) -> str:
        head: dict[str, object] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # Values in ``extra`` cannot override the fields that identify the record.
        entry = {**head, **_values(record), **head}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return _json(entry)


class ConsoleFormatter(logging.Formatter):
    """Time, level, message, then ``name=value`` pairs; tracebacks as Python prints them."""

    def format(self, record: logging.LogRecord) -> str:
        message = _printable(record.getMessage())
        head = f"{_time(record):%H:%M:%S} {record.levelname:<7} {message}"
        pairs = [f"{name}={_quoted(value)}" for name, value in _values(record).items()]
        line = "  ".join([head, " ".join(pairs)]) if pairs else head
        if record.exc_info:
            line = f"{line}\n{_printable(self.formatException(record.exc_info))}"
        return line


def _printable(text: str) -> str:
    """Return the text with other control characters than line breaks and tabs escaped."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    )


def _quoted(value: object) -> str:
    text = str(value)
    return _json(text) if not text.isprintable() or " " in text else text


def _json(value: object) -> str:
    """Return the value in JSON, in ASCII if it has line breaks or controls that JSON permits."""
    # So no value looks like a record of its own, or changes the terminal.
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value, default=str)


_FORMATTERS: Final[Mapping[LogFormat, type[logging.Formatter]]] = {
    LogFormat.JSON: JsonFormatter,
    LogFormat.CONSOLE: ConsoleFormatter,
}
