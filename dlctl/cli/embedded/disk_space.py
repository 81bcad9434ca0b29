"""Whether programs could still write, for failures that their own output cannot explain."""

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
