"""What the rest of the controller knows of leading; how one comes to lead is kept from it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Leadership(Protocol):
    """Who may do the work."""

    def may_write(self) -> bool:
        """Tell whether a write may be sent at this moment; callable from any thread."""
        ...

    def healthy(self) -> bool:
        """Tell whether this process is what it takes itself for."""
        ...

    def leading(self, stop: asyncio.Event) -> AbstractAsyncContextManager[bool]:
        """Lead for the duration of the block; yield False if told to stop before it came to that.

        If leadership is lost, the block is cancelled and LeaseLostError raised. Whatever writes
        must have ended when the block does, because then others lead.
        """
        ...


class NoLeaderElection:
    """The leadership of a controller that is the only one: nobody takes it away."""

    def may_write(self) -> bool:
        return True

    def healthy(self) -> bool:
        return True

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        yield True
