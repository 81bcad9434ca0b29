"""Leadership as the rest of the controller sees it, independent of the election."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Leadership(Protocol):
    """Permission to do the work."""

    def may_write(self) -> bool:
        """Return whether a write may be sent right now; callable from any thread."""
        ...

    def healthy(self) -> bool:
        """Return whether this process respects its leadership."""
        ...

    def leading(self, stop: asyncio.Event) -> AbstractAsyncContextManager[bool]:
        """Lead for the duration of the block; yield False if stopped before becoming the leader.

        If leadership is lost, the block is cancelled and LeaseLostError raised. All writers must
        have ended when the block does: then others lead.
        """
        ...


class NoLeaderElection:
    """The leadership of the only controller: always held, never lost."""

    def may_write(self) -> bool:
        return True

    def healthy(self) -> bool:
        return True

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        yield True
