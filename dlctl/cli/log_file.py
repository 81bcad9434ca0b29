"""Where the log goes while a terminal shows something else: a file, kept if it may be wanted."""

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
    """The log of one command."""

    path: Path
    kept: bool = False

    def keep(self) -> None:
        self.kept = True


@contextmanager
def log_file() -> Iterator[LogFile]:
    """Write the log to a file of its own; it goes afterwards, unless it is kept or we crash."""
    fd, name = tempfile.mkstemp(prefix="dlctl-", suffix=".log")
    log = LogFile(Path(name))
    with open(fd, "w", encoding="utf-8") as stream, _restore_root_logger():
        logs.configure(stream, format_=logs.LogFormat.CONSOLE)
        try:
            yield log
        except (ConfigError, BrokenPipeError):
            # Neither is a crash: the user's mistake, or the user has seen enough.
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
