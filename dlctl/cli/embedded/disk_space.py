"""Problems of a disk, which the output of programs cannot explain."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Less than a traceback and the files of an interpreter need.
_NEEDED_BYTES: Final = 1 << 16


def full_disk_lines(run_dir: Path, logs: Path | None = None) -> Iterator[str]:
    """Yield that the disk of the run directory is full, if it is, or that of the logs."""
    if shutil.disk_usage(run_dir).free < _NEEDED_BYTES:
        yield (
            f"hint: no space is left in {run_dir.parent}, so the end of the logs is missing: "
            "make room there, or set TMPDIR to another directory"
        )
    elif logs and shutil.disk_usage(logs).free < _NEEDED_BYTES:
        yield (
            f"hint: no space is left in {logs}, so the end of the logs is missing: make room "
            "there, or name another directory with --logs"
        )


def noexec_lines(run_dir: Path) -> Iterator[str]:
    """Yield that the file system of the run directory executes no programs, if it does not."""
    if os.statvfs(run_dir).f_flag & os.ST_NOEXEC:
        yield (
            f"hint: {run_dir.parent} is mounted noexec, so scripts in volumes cannot be executed, "
            "such as mpirun's kubexec.sh: set TMPDIR to another directory"
        )
