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

from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.errors import DlctlError

# What an owner is known by, such as the key of its object.
K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)

logger = logging.getLogger(__name__)

MAX_CONCURRENT: Final = 64
MAX_CONCURRENT_PER_OWNER: Final = 4


@attrs.frozen
class TaskOutcome:
    """How an errand has ended: with a result, or with an error that says why there is none."""

    result: Any = None
    error: str = ""
    # How often it has been tried by now.
    attempts: int = 1


@attrs.define(eq=False)
class _TaskState:
    delay_s: float = 0.0
    attempts: int = 0
    # It is to be done, or is being done.
    is_pending: bool = True
    outcome: TaskOutcome | None = None
    task: asyncio.Task[None] | None = None


@attrs.define(eq=False)
class _OwnerTasks:
    """What one owner wants, and its share of what runs at a time."""

    semaphore: asyncio.Semaphore
    states: dict[Any, _TaskState] = attrs.field(factory=dict)


class BackgroundTasks(Generic[K, T]):
    """The errands that owners want at the moment, and how those that are done have ended.

    They run while :meth:`run` does, of each owner only a few at a time, and each in a slot:
    ``slots`` returns the context in which an errand of an owner runs. When one ends, its owner is
    woken.
    """

    def __init__(
        self,
        run_task: Callable[[K, T], Awaitable[object]],
        enqueue: Callable[[K], None],
        *,
        limiter: Callable[[K, T], AbstractAsyncContextManager[None]] | None = None,
        max_concurrent: int = MAX_CONCURRENT,
        max_concurrent_per_owner: int = MAX_CONCURRENT_PER_OWNER,
    ) -> None:
        self._run_task = run_task
        self._enqueue = enqueue
        semaphore = FairSemaphore(max_concurrent)
        self._limiter = limiter or (lambda owner, task: semaphore.slot(owner))
        self._max_per_owner = max_concurrent_per_owner
        self._by_owner: dict[K, _OwnerTasks] = {}
        self._task_group: asyncio.TaskGroup | None = None

    def set_wanted(self, owner: K, tasks: Collection[T]) -> None:
        """Say all that the owner wants now: the new ones start, and others are given up."""
        owned = self._by_owner.get(owner)
        if owned is None:
            owned = self._by_owner[owner] = _OwnerTasks(asyncio.Semaphore(self._max_per_owner))
        for task in [known for known in owned.states if known not in tasks]:
            _cancel(owned.states.pop(task))
        for task in tasks:
            if task not in owned.states:
                state = owned.states[task] = _TaskState()
                self._start(owner, task, state)
        if not owned.states:
            del self._by_owner[owner]

    def outcomes(self, owner: K) -> Mapping[T, TaskOutcome]:
        """Return how those that the owner wants have ended last, as far as they have."""
        return {task: state.outcome for task, state in self._states(owner) if state.outcome}

    def retry(self, owner: K, task: T, *, after_s: float = 0.0) -> None:
        """Do again what has ended, after a pause; until it has, its last outcome holds.

        Nothing comes of it if the errand runs, waits for its pause, or is not wanted.
        """
        state = self._state(owner, task)
        if state is not None and not state.is_pending:
            state.is_pending, state.delay_s = True, after_s
            self._start(owner, task, state)

    def forget(self, owner: K) -> None:
        """Give up all that the owner wants; its outcomes are gone."""
        if owned := self._by_owner.pop(owner, None):
            for state in owned.states.values():
                _cancel(state)

    async def run(self) -> None:
        """Carry errands out until cancelled; those that are cut short start anew with the next."""
        async with asyncio.TaskGroup() as group:
            self._task_group = group
            for owner in list(self._by_owner):
                for task, state in self._states(owner):
                    if state.is_pending:
                        self._start(owner, task, state)
            try:
                # For ever: nothing but a cancellation ends it.
                await asyncio.get_running_loop().create_future()
            finally:
                self._task_group = None

    def _states(self, owner: K) -> Iterator[tuple[T, _TaskState]]:
        owned = self._by_owner.get(owner)
        return iter(owned.states.items() if owned else ())

    def _state(self, owner: K, task: T) -> _TaskState | None:
        owned = self._by_owner.get(owner)
        return owned.states.get(task) if owned else None

    def _start(self, owner: K, task: T, state: _TaskState) -> None:
        if self._task_group is not None:
            coroutine = self._run_one(owner, task, state)
            state.task = self._task_group.create_task(coroutine, name=f"errand of {owner}")

    async def _run_one(self, owner: K, task: T, state: _TaskState) -> None:
        semaphore = self._by_owner[owner].semaphore
        await asyncio.sleep(state.delay_s)
        # In this order: what waits for its owner's turn must take nobody else's.
        async with semaphore, self._limiter(owner, task):
            state.attempts += 1
            outcome = await self._outcome(owner, task, state.attempts)
        # One that was given up, and took it for an error, is of no interest any more.
        if self._state(owner, task) is state:
            state.outcome, state.is_pending = outcome, False
            self._enqueue(owner)

    async def _outcome(self, owner: K, task: T, attempts: int) -> TaskOutcome:
        try:
            return TaskOutcome(await self._run_task(owner, task), attempts=attempts)
        except (DlctlError, OSError) as error:
            return TaskOutcome(error=str(error) or type(error).__name__, attempts=attempts)
        except Exception as error:
            # One broken errand must not stop all others. Its value may hold what is not for a log.
            kind = type(task).__name__
            logger.exception("errand failed", extra={"owner": str(owner), "errand": kind})
            return TaskOutcome(error=f"{type(error).__name__}: {error}", attempts=attempts)


def _cancel(state: _TaskState) -> None:
    if state.task is not None:
        state.task.cancel()
