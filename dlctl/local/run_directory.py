"""The temporary directory of a cluster: removed with it, or by the next one if it was killed."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dlctl.errors import ConfigError
from dlctl.local.file_lock import exclusive_lock, holder, write_holder

_PREFIX: Final = "dlctl-"
# Identifies a run directory: no other one has a file of this name.
_LOCK: Final = "run-directory.lock"


@contextmanager
def temporary_run_directory() -> Iterator[Path]:
    """Yield a private directory for the duration of the block; first remove abandoned ones.

    :raises ConfigError: if there is no place for it, as on a full disk.
    """
    for path in _temporary().glob(f"{_PREFIX}*"):
        if _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_temporary()) as name,
        exclusive_lock(Path(name) / _LOCK) as lock,
    ):
        write_holder(lock)
        yield Path(name)


def _temporary() -> Path:
    try:
        # Programs start in directories of their own.
        return Path(tempfile.gettempdir()).absolute()
    except FileNotFoundError as error:
        raise ConfigError(
            f"{error.strerror}: is the disk full? TMPDIR names another directory"
        ) from error


def _is_abandoned(path: Path) -> bool:
    """Return whether it is a directory of this user whose process is gone."""
    with suppress(OSError):
        found, lock = path.lstat(), path / _LOCK
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        # Named in the file only once it is held: an empty one is about to be.
        return is_ours and lock.stat().st_size > 0 and holder(lock) is None
    return False
