"""Work shared by a fixed number of tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

# Concurrent requests of the plain writers, and of all other clients here.
WRITERS: Final = 32


async def each(
    items: Iterable[T], do: Callable[[T], Awaitable[None]], *, at_once: int = WRITERS
) -> None:
    """Do something with each item; the first failure is raised."""
    shared = iter(items)

    async def work() -> None:
        for item in shared:
            await do(item)

    await asyncio.gather(*(work() for _ in range(at_once)))
