"""The log while a terminal shows the screen: a file, kept if it may be needed."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from dlctl import logs
from dlctl.errors import ConfigError


@attrs.define
class LogFile:
    """The log file of one command."""

    path: Path
    kept: bool = False

    def keep(self) -> None:
        self.kept = True


@contextmanager
def log_file(path: Path | None = None) -> Iterator[LogFile]:
    """Write the log to this file, or to a temporary one.

    That is deleted afterwards unless kept, or after a crash.
    """
    if path is not None:
        fd, log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), LogFile(path, True)
    else:
        fd, name = tempfile.mkstemp(prefix="dlctl-", suffix=".log")
        log = LogFile(Path(name))
    with open(fd, "w", encoding="utf-8") as stream, _restore_root_logger():
        logs.configure(stream, format_=logs.LogFormat.CONSOLE)
        try:
            yield log
        except (ConfigError, BrokenPipeError):
            # Not a crash: a user error, or the user interrupted the command.
            raise
        except Exception:
            log.keep()
            print(f"dlctl: the log is in {log.path}", file=sys.stderr)
            raise
        finally:
            if not log.kept:
                with suppress(FileNotFoundError):
                    os.unlink(log.path)


@contextmanager
def _restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
