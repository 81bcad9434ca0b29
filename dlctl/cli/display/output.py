"""Text for a terminal, a pipe or a file, written by a thread of its own.

A reader that pauses, as ``less`` does, must not stop the cluster that runs in this process. What
waits is bounded, provided that writers wait for :meth:`Output.drained`.
"""

import asyncio
import errno
import os
import select
import threading
from contextlib import suppress
from typing import Final, TextIO

_FULL_CHARS: Final = 1 << 18
# After an interruption the reader gets this long to take what is left.
_CLOSE_TIMEOUT_S: Final = 1.0


class Output:
    """A file for rich and for lines; :meth:`write` never waits, :meth:`drained` does."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding or "utf-8"
        stream.flush()
        self._pending: list[str] = []
        self._chars = 0
        self._closing = False
        self._error: OSError | None = None
        self._changed = threading.Condition()
        self._written = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    @property
    def full(self) -> bool:
        return self._chars > _FULL_CHARS

    def write(self, text: str) -> int:
        """Write later; raise what an earlier write has raised."""
        with self._changed:
            if self._error:
                raise self._error
            if text:
                self._pending.append(text)
                self._chars += len(text)
                self._changed.notify()
        return len(text)

    def flush(self) -> None:
        """Do nothing: the thread writes as soon as it can."""

    def isatty(self) -> bool:
        return self._stream.isatty()

    async def drained(self, chars: int = _FULL_CHARS) -> None:
        """Wait until at most this much waits to be written; raise what a write has raised."""
        while self._chars > chars and not self._error:
            self._written.clear()
            await self._written.wait()
        if self._error:
            raise self._error

    def close(self) -> None:
        """End the thread; what the reader does not take in time is lost."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while text := self._next():
            try:
                self._write_out(text)
            except OSError as error:
                # The error of a closed terminal.
                closed = error.errno == errno.EIO
                self._error = BrokenPipeError(*error.args) if closed else error
            with self._changed:
                self._chars -= len(text)
            with suppress(RuntimeError):  # The loop has been closed.
                self._loop.call_soon_threadsafe(self._written.set)

    def _next(self) -> str:
        with self._changed:
            while not (self._pending or self._closing):
                self._changed.wait()
            text = "".join(self._pending)
            self._pending.clear()
        return text

    def _write_out(self, text: str) -> None:
        data = text.encode(self.encoding, "replace")
        try:
            fd = self._stream.fileno()
        except OSError:
            # Not a file, as in tests and notebooks.
            self._stream.write(data.decode(self.encoding))
            return
        # Not through the stream: a thread that waits in it would keep it locked at exit.
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                select.select([], [fd], [])
