"""A file that one process at a time holds, and that names it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class HeldError(Exception):
    """Another process holds the file."""


@contextmanager
def exclusive_lock(path: Path) -> Iterator[int]:
    """Hold the file for the duration of the block, and yield its descriptor.

    It is free as soon as its holder is gone, whatever ended it. The holder may remove it.
    :raises HeldError: if another process holds it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(str(path)) from None
        if not os.fstat(lock).st_nlink:
            # Removed since it was opened: another process may create and hold it.
            raise HeldError(str(path))
        yield lock
    finally:
        os.close(lock)


def write_holder(lock: int) -> None:
    """Write the ID of this process, which holds the file."""
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def holder(path: Path) -> int | None:
    """Return the ID of the process that holds the file; None if none does."""
    with suppress(FileNotFoundError, ValueError):
        lock = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(path.read_text())
        finally:
            os.close(lock)
    return None
