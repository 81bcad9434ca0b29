"""The log while a terminal shows the screen: a file, kept if it may be needed."""

import io
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from dlctl import logs
from dlctl.errors import DISK_FULL, ConfigError, config_errors


@attrs.define
class LogFile:
    """The log file of one command."""

    path: Path
    kept: bool = False

    def keep(self) -> None:
        """Move it out of the run directory, which is removed."""
        if not self.kept:
            fd, name = tempfile.mkstemp(prefix="dlctl-", suffix=".log")
            os.close(fd)
            self.path, self.kept = self.path.replace(name), True


class _LossyFile(io.RawIOBase):
    """Drops what a full disk does not take: jobs run on, and `full_disk_lines` reports it."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        try:
            return os.write(self._fd, data)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()


@contextmanager
def log_file(path: Path | None, run_dir: Path) -> Iterator[LogFile]:
    """Write the log to this file, or to one in the run directory.

    That is removed with the directory, however the command ends, unless kept, or after a crash.
    :raises ConfigError: if the file cannot be written.
    """
    log = LogFile(path or run_dir / "controller.log", kept=path is not None)
    with config_errors(f"cannot write {log.path}"):
        fd = os.open(log.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    file = io.BufferedWriter(_LossyFile(fd))
    with io.TextIOWrapper(file, encoding="utf-8") as stream, _restore_root_logger():
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


@contextmanager
def _restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
