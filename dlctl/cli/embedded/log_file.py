"""The log while a terminal shows the screen: a file, kept if it may be needed."""

import io
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from dlctl import logs
from dlctl.errors import DISK_FULL, ConfigError, config_errors
from dlctl.local.file_lock import HeldError, exclusive_lock


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
    :raises ConfigError: if the file cannot be written, or another command writes it.
    """
    log = LogFile(path or run_dir / "controller.log", kept=path is not None)
    with ExitStack() as stack:
        with config_errors(f"cannot write {log.path}"):
            fd = _locked(log.path, stack)
        file = io.BufferedWriter(_LossyFile(fd))
        stream = stack.enter_context(io.TextIOWrapper(file, encoding="utf-8"))
        stack.enter_context(_restore_root_logger())
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


def _locked(path: Path, stack: ExitStack) -> int:
    """Return the descriptor of the empty file, which the stack holds for this command alone."""
    try:
        stack.enter_context(exclusive_lock(path))
    except HeldError:
        raise ConfigError(
            f"another command writes its logs to {path.parent}: name another directory"
        ) from None
    return os.open(path, os.O_WRONLY | os.O_TRUNC)


@contextmanager
def _restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
