"""Work that reconcilers ask for and never wait for: what takes seconds, as a script in a pod does.

An errand is a value, and equal ones are the same errand. What to do about one that has failed is
for whoever asked: nothing is tried again here by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, TypeVar

import attrs

from dlctl.errors import DlctlError
from dlctl.reconcilers.slots import FairSlots

# What an owner is known by, such as the key of its object.
K = TypeVar("K", bound=Hashable)
E = TypeVar("E", bound=Hashable)

logger = logging.getLogger(__name__)

AT_A_TIME: Final = 64
AT_A_TIME_PER_OWNER: Final = 4


@attrs.frozen
class Outcome:
    """How an errand has ended: with a result, or with an error that says why there is none."""

    result: Any = None
    error: str = ""
    # How often it has been tried by now.
    tries: int = 1


@attrs.define(eq=False)
class _Work:
    delay_s: float = 0.0
    tries: int = 0
    # It is to be done, or is being done.
    open: bool = True
    outcome: Outcome | None = None
    task: asyncio.Task[None] | None = None


@attrs.define(eq=False)
class _Desk:
    """What one owner wants, and its share of what runs at a time."""

    slots: asyncio.Semaphore
    works: dict[Any, _Work] = attrs.field(factory=dict)


class Errands(Generic[K, E]):
    """The errands that owners want at the moment, and how those that are done have ended.

    They run while :meth:`run` does, of each owner only a few at a time, and each in a slot:
    ``slots`` returns the context in which an errand of an owner runs. When one ends, its owner is
    woken.
    """

    def __init__(
        self,
        perform: Callable[[K, E], Awaitable[object]],
        wake: Callable[[K], None],
        *,
        slots: Callable[[K, E], AbstractAsyncContextManager[None]] | None = None,
        at_a_time: int = AT_A_TIME,
        at_a_time_per_owner: int = AT_A_TIME_PER_OWNER,
    ) -> None:
        self._perform = perform
        self._wake = wake
        shared = FairSlots(at_a_time)
        self._slot = slots or (lambda owner, errand: shared.held(owner))
        self._per_owner = at_a_time_per_owner
        self._desks: dict[K, _Desk] = {}
        self._group: asyncio.TaskGroup | None = None

    def want(self, owner: K, errands: Collection[E]) -> None:
        """Say all that the owner wants now: the new ones start, and others are given up."""
        desk = self._desks.get(owner)
        if desk is None:
            desk = self._desks[owner] = _Desk(asyncio.Semaphore(self._per_owner))
        for errand in [known for known in desk.works if known not in errands]:
            _give_up(desk.works.pop(errand))
        for errand in errands:
            if errand not in desk.works:
                work = desk.works[errand] = _Work()
                self._start(owner, errand, work)
        if not desk.works:
            del self._desks[owner]

    def outcomes(self, owner: K) -> Mapping[E, Outcome]:
        """Return how those that the owner wants have ended last, as far as they have."""
        return {errand: work.outcome for errand, work in self._works(owner) if work.outcome}

    def retry(self, owner: K, errand: E, *, after_s: float = 0.0) -> None:
        """Do again what has ended, after a pause; until it has, its last outcome holds.

        Nothing comes of it if the errand runs, waits for its pause, or is not wanted.
        """
        work = self._work(owner, errand)
        if work is not None and not work.open:
            work.open, work.delay_s = True, after_s
            self._start(owner, errand, work)

    def forget(self, owner: K) -> None:
        """Give up all that the owner wants; its outcomes are gone."""
        if desk := self._desks.pop(owner, None):
            for work in desk.works.values():
                _give_up(work)

    async def run(self) -> None:
        """Carry errands out until cancelled; those that are cut short start anew with the next."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for owner in list(self._desks):
                for errand, work in self._works(owner):
                    if work.open:
                        self._start(owner, errand, work)
            try:
                # For ever: nothing but a cancellation ends it.
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def _works(self, owner: K) -> Iterator[tuple[E, _Work]]:
        desk = self._desks.get(owner)
        return iter(desk.works.items() if desk else ())

    def _work(self, owner: K, errand: E) -> _Work | None:
        desk = self._desks.get(owner)
        return desk.works.get(errand) if desk else None

    def _start(self, owner: K, errand: E, work: _Work) -> None:
        if self._group is not None:
            carried_out = self._carry_out(owner, errand, work)
            work.task = self._group.create_task(carried_out, name=f"errand of {owner}")

    async def _carry_out(self, owner: K, errand: E, work: _Work) -> None:
        slots = self._desks[owner].slots
        await asyncio.sleep(work.delay_s)
        # In this order: what waits for its owner's turn must take nobody else's.
        async with slots, self._slot(owner, errand):
            work.tries += 1
            outcome = await self._outcome(owner, errand, work.tries)
        # One that was given up, and took it for an error, is of no interest any more.
        if self._work(owner, errand) is work:
            work.outcome, work.open = outcome, False
            self._wake(owner)

    async def _outcome(self, owner: K, errand: E, tries: int) -> Outcome:
        try:
            return Outcome(await self._perform(owner, errand), tries=tries)
        except (DlctlError, OSError) as error:
            return Outcome(error=str(error) or type(error).__name__, tries=tries)
        except Exception as error:
            # One broken errand must not stop all others. Its value may hold what is not for a log.
            kind = type(errand).__name__
            logger.exception("errand failed", extra={"owner": str(owner), "errand": kind})
            return Outcome(error=f"{type(error).__name__}: {error}", tries=tries)


def _give_up(work: _Work) -> None:
    if work.task is not None:
        work.task.cancel()
