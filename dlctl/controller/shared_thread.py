"""A thread that computes for all namespaces, so that none of them blocks the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakKeyDictionary

import attrs

from dlctl.controller.fair_semaphore import FairSemaphore

R = TypeVar("R")


@attrs.frozen(eq=False)
class SharedThread:
    """A thread that computes one thing at a time, for each namespace in turn.

    More threads would slow down the event loop.
    """

    name: str
    # A process may have several event loops, one after the other or in threads.
    _turns: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = attrs.field(
        init=False, factory=WeakKeyDictionary
    )
    _executor: ThreadPoolExecutor = attrs.field(init=False)

    @_executor.default
    def _one_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=self.name)

    async def run(self, namespace: str, function: Callable[[], R]) -> R:
        """Return the result of a pure function for a namespace."""
        loop = asyncio.get_running_loop()
        async with self._turns.setdefault(loop, FairSemaphore(1)).slot(namespace):
            return await loop.run_in_executor(self._executor, function)
