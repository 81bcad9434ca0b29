"""Background tasks: work of seconds, such as scripts in pods, that reconcilers do not wait for.

A task is a value, and equal ones are the same task. Failed tasks are not retried by themselves: the
owner decides.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, TypeVar

import attrs

from dlctl import logs
from dlctl.errors import DlctlError, describe, truncated

# Identifies an owner, such as the key of its object.
K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)

logger = logging.getLogger(__name__)

MAX_CONCURRENT_PER_OWNER: Final = 4


@attrs.frozen
class TaskOutcome:
    """The outcome of a task: a result, or the error that prevented it."""

    result: object = None
    error: str = ""
    # The number of attempts so far.
    attempts: int = 1


@attrs.define(eq=False)
class _TaskState:
    delay_s: float = 0.0
    attempts: int = 0
    # True if it runs or waits to run.
    is_pending: bool = True
    outcome: TaskOutcome | None = None
    task: asyncio.Task[None] | None = None


@attrs.define(eq=False)
class _OwnerTasks:
    """The tasks that one owner wants, and its limit of concurrent ones."""

    semaphore: asyncio.Semaphore
    states: dict[Any, _TaskState] = attrs.field(factory=dict)


class BackgroundTasks(Generic[K, T]):
    """The tasks that owners currently want, and the outcomes of those that are done.

    They run while :meth:`run` does: only a few at a time per owner, each within the context that
    ``limiter`` returns for it. When a task ends, its owner is enqueued. Their log records name the
    ``controller`` of the owner.
    """

    def __init__(
        self,
        run_task: Callable[[K, T], Awaitable[object]],
        enqueue: Callable[[K], None],
        *,
        controller: str,
        limiter: Callable[[K, T], AbstractAsyncContextManager[None]],
        max_concurrent_per_owner: int = MAX_CONCURRENT_PER_OWNER,
    ) -> None:
        self._run_task = run_task
        self._enqueue = enqueue
        self._controller = controller
        self._limiter = limiter
        self._max_per_owner = max_concurrent_per_owner
        self._by_owner: dict[K, _OwnerTasks] = {}
        self._task_group: asyncio.TaskGroup | None = None
        self._context = contextvars.Context()

    def set_wanted(self, owner: K, tasks: Collection[T]) -> None:
        """Set all tasks that the owner wants: new ones start, others are cancelled."""
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
        """Return the last outcome of each task that the owner wants, as far as there is one."""
        return {task: state.outcome for task, state in self._states(owner) if state.outcome}

    def retry(self, owner: K, task: T, *, after_s: float = 0.0) -> None:
        """Repeat a finished task after a pause; its last outcome stays until it is done again.

        Does nothing if the task is running, waiting, or not wanted.
        """
        state = self._state(owner, task)
        if state is not None and not state.is_pending:
            state.is_pending, state.delay_s = True, after_s
            self._start(owner, task, state)

    def forget(self, owner: K) -> None:
        """Cancel all tasks of the owner and drop their outcomes."""
        if owned := self._by_owner.pop(owner, None):
            for state in owned.states.values():
                _cancel(state)

    async def run(self) -> None:
        """Run tasks until cancelled; the next call restarts those that were interrupted."""
        async with asyncio.TaskGroup() as group:
            self._task_group, self._context = group, contextvars.copy_context()
            for owner in list(self._by_owner):
                for task, state in self._states(owner):
                    if state.is_pending:
                        self._start(owner, task, state)
            try:
                # Never completes: only a cancellation ends it.
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
            state.task = self._task_group.create_task(
                coroutine,
                name=f"background task of {owner}",
                # Not that of the caller: a task outlives the reconcile that wants it.
                context=self._context.copy(),
            )

    async def _run_one(self, owner: K, task: T, state: _TaskState) -> None:
        semaphore = self._by_owner[owner].semaphore
        await asyncio.sleep(state.delay_s)
        # Not its value, which may be unfit for a log.
        fields = {
            logs.CONTROLLER: self._controller,
            logs.OBJECT: str(owner),
            "task": type(task).__name__,
        }
        with logs.log_fields(**fields):
            outcome = await self._outcome(owner, task, state, semaphore)
        # A cancelled task may report the cancellation as an error; ignore it.
        if self._state(owner, task) is state:
            state.outcome, state.is_pending = outcome, False
            self._enqueue(owner)

    async def _outcome(
        self, owner: K, task: T, state: _TaskState, semaphore: asyncio.Semaphore
    ) -> TaskOutcome:
        try:
            # In this order: a task that waits for its owner's limit must not hold a slot.
            async with semaphore, self._limiter(owner, task):
                state.attempts += 1
                return TaskOutcome(await self._run_task(owner, task), attempts=state.attempts)
        except (DlctlError, OSError) as error:
            return TaskOutcome(error=truncated(describe(error)), attempts=state.attempts)
        except Exception as error:
            # One broken task must not stop the others.
            logger.exception("background task failed")
            message = truncated(f"{type(error).__name__}: {error}")
            return TaskOutcome(error=message, attempts=state.attempts)


def _cancel(state: _TaskState) -> None:
    if state.task is not None:
        state.task.cancel()
