"""Ctrl-C, SIGTERM and a closed terminal, for commands that own processes.

The first signal shuts down, the second kills.

Not for the controller, which drains its queue before it exits.
"""

import asyncio
import logging
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from dlctl.local.run_directory import temporary_run_directory

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_STDOUT: Final = 1
_STDERR: Final = 2
_SHOW_CURSOR: Final = b"\x1b[?25h"
# Programs of pods are killed within milliseconds; a removal that cannot succeed does not hang.
_REMOVAL_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.01


class Interrupts:
    """Turns the first signal into a cancellation, or into the return of :meth:`wait`."""

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
        self.caught: signal.Signals | None = None
        self._task = task
        self._waiting: asyncio.Event | None = None
        self._temporary: list[Path] = []

    @contextmanager
    def temporary_directory(self) -> Iterator[Path]:
        """Yield a directory that is removed after the block, also by the second signal."""
        with temporary_run_directory() as path:
            self._temporary.append(path)
            yield path

    async def wait(self) -> None:
        """Wait for the first signal as the normal way to continue, not as an interruption."""
        self._waiting = asyncio.Event()
        try:
            await self._waiting.wait()
        finally:
            self._waiting = None

    def tear_down(self) -> None:
        """Begin what the first signal asks for: from now on, only the second changes anything."""
        self._task = None

    def catch(self, number: signal.Signals) -> None:
        if self.caught is not None:
            self._kill(number)
        self.caught = number
        if number == signal.SIGHUP:
            _leave_terminal()
        if self._waiting:
            self._waiting.set()
        elif self._task:
            self._task.cancel()

    def _kill(self, number: signal.Signals) -> NoReturn:
        """End at once, with all pods, and leave neither files nor a hidden cursor behind."""
        # A third signal would wake the loop through a descriptor that is closed below.
        signal.set_wakeup_fd(-1)
        # Threads that watch children would complain that these are gone, and the log, too.
        logging.disable()
        logging.raiseExceptions = False
        if os.isatty(_STDERR):
            os.write(_STDERR, _SHOW_CURSOR)
        # Processes of pods end when their connection to this process closes.
        os.closerange(_STDERR + 1, os.sysconf("SC_OPEN_MAX"))
        deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
        while _has_children() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        for path in self._temporary:
            # Terminating programs may still create files.
            while path.exists() and time.monotonic() < deadline:
                shutil.rmtree(path, ignore_errors=True)
        os._exit(128 + number)


def _leave_terminal() -> None:
    """Write nothing more to the terminal: it is gone, and each write would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in (_STDOUT, _STDERR):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            os.dup2(nowhere, fd)
    os.close(nowhere)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def run_until_signalled(main: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> int:
    """Run to the end; return the exit code, by convention 128 + n after signal n."""
    # A separate loop: the thread's own loop, if any, is restored afterwards.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(_run(main))


async def _run(main: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> int:
    loop = asyncio.get_running_loop()
    interrupts = Interrupts(asyncio.current_task())
    # Under nohup, a closed terminal ends nothing.
    nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    handled = _SIGNALS if nohup else (*_SIGNALS, signal.SIGHUP)
    for number in handled:
        loop.add_signal_handler(number, interrupts.catch, number)
    try:
        return await main(interrupts)
    except asyncio.CancelledError:
        if interrupts.caught is None:
            raise
        print("dlctl: interrupted", file=sys.stderr)
        return 128 + interrupts.caught
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
