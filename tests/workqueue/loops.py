"""An event loop for steps in time that a real one would take while it is busy."""

import asyncio


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still until it is told otherwise."""

    now = 0.0

    def time(self) -> float:
        return self.now
