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
def log_file() -> Iterator[LogFile]:
    """Write the log to its own file; delete it afterwards unless kept or after a crash."""
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
