"""The termination message of a container: from its file, or else from the end of its log."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from dlctl.local.node.api_types import Container
from dlctl.local.node.containers.logs import tail_position

_FILE_BYTES: Final = 4096
# The part of a log that is used instead.
_LOG_BYTES: Final = 2048
_LOG_LINES: Final = 80


def termination_message(container: Container, exit_code: int, file: Path, log: Path) -> str:
    """Return the message of a run that has ended; blocking, and empty if a file was removed."""
    with suppress(OSError):
        if text := _end_of_file(file):
            return text
        if exit_code and container.termination_message_policy == "FallbackToLogsOnError":
            return _end_of_log(log)
    return ""


def _end_of_file(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _FILE_BYTES))
        return file.read(_FILE_BYTES).decode(errors="replace")


def _end_of_log(path: Path) -> str:
    with path.open("rb") as log:
        # A progress bar may be one line of any length.
        log.seek(max(tail_position(path, _LOG_LINES), log.seek(0, os.SEEK_END) - _LOG_BYTES))
        return log.read(_LOG_BYTES).decode(errors="replace")
