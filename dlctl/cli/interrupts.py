"""Ctrl-C and SIGTERM for commands that own processes: the first shuts down, the second kills.

Not for the controller, which drains its queue before it exits.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Turns the first signal into a cancellation, or into the return of :meth:`wait`."""

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
        self.caught: signal.Signals | None = None
        self._task = task
        self._waiting: asyncio.Event | None = None

    async def wait(self) -> None:
        """Wait for the first signal as the normal way to continue, not as an interruption."""
        self._waiting = asyncio.Event()
        await self._waiting.wait()
        self._waiting = None

    def catch(self, number: signal.Signals) -> None:
        if self.caught is not None:
            # Processes of pods end when their connection to this process closes.
            os._exit(128 + number)
        self.caught = number
        if self._waiting:
            self._waiting.set()
        elif self._task:
            self._task.cancel()


def run_until_signalled(main: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> int:
    """Run to the end; return the exit code, by convention 128 + n after signal n."""
    # A separate loop: the thread's own loop, if any, is restored afterwards.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(_run(main))


async def _run(main: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> int:
    loop = asyncio.get_running_loop()
    interrupts = Interrupts(asyncio.current_task())
    for number in _SIGNALS:
        loop.add_signal_handler(number, interrupts.catch, number)
    try:
        return await main(interrupts)
    except asyncio.CancelledError:
        if interrupts.caught is None:
            raise
        print("dlctl: interrupted", file=sys.stderr)
        return 128 + interrupts.caught
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
