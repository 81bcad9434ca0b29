"""Structured concurrency where asyncio's own is a step short.

Every task has an owner who waits for it; outside of groups, there is no other ``create_task``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def map_all(do: Callable[[A], Awaitable[B]], items: Iterable[A], *, limit: int) -> list[B]:
    """Return the results in the order of the items, having run ``limit`` at a time.

    The first failure cancels the others and is raised by itself, not in a group: a group would
    pass by the ``except ConflictError`` of the caller. A cancellation wins over failures.
    """
    given = list(items)
    waiting = iter(enumerate(given))
    results: dict[int, B] = {}
    failures: list[Exception] = []
    tasks: list[asyncio.Task[None]] = []

    async def run() -> None:
        try:
            for number, item in waiting:
                results[number] = await do(item)
        except Exception as error:
            # Kept from the group, which would lose a cancellation of the caller over it, and in
            # Python 3.11 leave the caller with one that nobody asked for.
            failures.append(error)
            for task in tasks:
                task.cancel()
            raise asyncio.CancelledError from error

    async with asyncio.TaskGroup() as group:
        # No task for each item: hundreds of reconciles may have a thousand items each.
        tasks += [group.create_task(run()) for _ in range(min(limit, len(given)))]
    if failures:
        raise failures[0]
    for task in tasks:
        # Raises if ``do`` ended with a cancellation of its own: the group takes no notice of it.
        task.result()
    return [results[number] for number in range(len(given))]


@contextmanager
def unwrap_exception_groups() -> Iterator[None]:
    """Raise the first failure of the task groups in the block by itself, whatever their depth."""
    try:
        yield
    except BaseExceptionGroup as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from failures


async def run_to_end(run: Coroutine[Any, Any, A]) -> A:
    """Return what a coroutine returns; a first cancellation waits until it has ended."""
    task = asyncio.create_task(run)
    try:
        # Unlike an await of the task, it does not pass a cancellation on.
        await asyncio.wait([task])
    except asyncio.CancelledError:
        try:
            # Nobody is interested in its failure now.
            await asyncio.gather(task, return_exceptions=True)
        finally:
            task.cancel()
        raise
    return task.result()


async def run_until_first(*runs: Coroutine[Any, Any, object]) -> None:
    """Run all until the first of them ends; the others are cancelled. Its failure is raised."""
    with unwrap_exception_groups():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run) for run in runs]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
