"""An event loop whose clock a test sets, also while the loop is busy."""

import asyncio


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock only moves when it is set."""

    now = 0.0

    def time(self) -> float:
        return self.now
