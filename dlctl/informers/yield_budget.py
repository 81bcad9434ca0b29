"""How much a loop over many objects does before it yields to the event loop."""

import asyncio
import time
from typing import Final

import attrs

# A millisecond or two, or fewer steps if they take long.
_MAX_STEPS: Final = 250
_MAX_TIME_S: Final = 0.005


@attrs.define
class YieldBudget:
    """The steps and the time until the event loop must run: changes delivered, objects stored."""

    _steps: int = attrs.field(init=False, default=0)
    _started_s: float = attrs.field(init=False, factory=time.perf_counter)

    def spend(self) -> bool:
        """Count a step; return whether it is the last one."""
        self._steps += 1
        took_s = time.perf_counter() - self._started_s
        return self._steps >= _MAX_STEPS or took_s >= _MAX_TIME_S

    async def renew(self) -> None:
        """Let the event loop run, and start again."""
        await asyncio.sleep(0)
        self._steps, self._started_s = 0, time.perf_counter()
