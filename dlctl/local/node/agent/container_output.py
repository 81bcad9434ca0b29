"""The output of a program on its way to its log: a pipe, as on a real node.

A program may open its output again by name, as ``tee /dev/stderr`` does, which would empty a file.
"""

import fcntl
import os
import select
from contextlib import suppress
from typing import Final

from dlctl.local.node import linux

_CHUNK_BYTES: Final = 1 << 16
# File systems free whole blocks only, at most this large.
_BLOCK_BYTES: Final = 1 << 16


class ContainerOutput:
    """A pipe whose write end the program gets, and the log that it is copied to.

    What the log does not take is lost, as where its disk is full. Of a log that grows beyond
    ``limit_bytes`` the older half is lost; 0 is no limit.
    """

    def __init__(self, log_path: str, limit_bytes: int = 0) -> None:
        self._log_fd = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._limit_bytes = limit_bytes
        self._size, self._kept_from = os.fstat(self._log_fd).st_size, 0
        self._read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_fd, False)
        self._events = select.poll()

    def start_copying(self) -> None:
        """Leave the write end to the program, which has it now."""
        os.close(self.write_fd)
        self._events.register(self._read_fd, select.POLLIN)

    def copy_until_readable(self, fd: int) -> None:
        """Copy until there is something to read from another descriptor."""
        self._events.register(fd, select.POLLIN)
        while True:
            ready = {found for found, _ in self._events.poll()}
            if self._read_fd in ready and not self._copy():
                # Nobody has the write end any more.
                self._events.unregister(self._read_fd)
            if fd in ready:
                return

    def copy_rest(self) -> None:
        """Copy what the pipe holds now: others may still write to it."""
        left = fcntl.fcntl(self._read_fd, fcntl.F_GETPIPE_SZ)
        while left > 0 and (copied := self._copy()):
            left -= copied

    def _copy(self) -> int:
        """Copy one chunk and return its size; 0 at the end, or if there is none."""
        try:
            data = os.read(self._read_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        with suppress(OSError):
            rest = memoryview(data)
            while rest:
                written = os.write(self._log_fd, rest)
                self._size += written
                rest = rest[written:]
            if 0 < self._limit_bytes < self._size - self._kept_from:
                self._drop_oldest()
        return len(data)

    def _drop_oldest(self) -> None:
        # A hole instead of a new file: readers' offsets stay valid.
        kept_from = (self._size - self._limit_bytes // 2) // _BLOCK_BYTES * _BLOCK_BYTES
        try:
            linux.punch_hole(self._log_fd, kept_from)
        except OSError:
            # This file system has no holes.
            self._limit_bytes = 0
        else:
            self._kept_from = kept_from
