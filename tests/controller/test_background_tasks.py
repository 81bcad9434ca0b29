"""Background tasks on simulated loop time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import attrs
import looptime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.controller.background_tasks import BackgroundTasks, TaskOutcome
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.errors import MAX_MESSAGE_CHARS, DlctlError
from dlctl.kube.errors import UnreachableError

pytestmark = pytest.mark.looptime


@attrs.frozen
class SleepTask:
    """A task that takes this long and then has this outcome."""

    seconds: float = 1.0
    name: str = ""
    fails: type[Exception] | None = None


@attrs.define
class SleepTasks:
    """Runs naps, and records the runs and the enqueued owners."""

    tasks: BackgroundTasks[str, SleepTask] = attrs.field(init=False)
    started: list[tuple[str, SleepTask]] = attrs.field(factory=list)
    cancelled: list[tuple[str, SleepTask]] = attrs.field(factory=list)
    enqueued: list[str] = attrs.field(factory=list)
    running_count: Counter[str] = attrs.field(factory=Counter)
    max_running: Counter[str] = attrs.field(factory=Counter)
    max_concurrent: int = 64
    max_concurrent_per_owner: int = 4

    def __attrs_post_init__(self) -> None:
        slots = FairSemaphore(self.max_concurrent)
        self.tasks = BackgroundTasks(
            self.take,
            self.enqueued.append,
            controller="jobs",
            limiter=lambda owner, _: slots.slot(owner),
            max_concurrent_per_owner=self.max_concurrent_per_owner,
        )

    async def take(self, owner: str, task: SleepTask) -> str:
        self.started.append((owner, task))
        for counted in (owner, "all"):
            self.running_count[counted] += 1
            self.max_running[counted] = max(self.max_running[counted], self.running_count[counted])
        try:
            await asyncio.sleep(task.seconds)
        except asyncio.CancelledError:
            self.cancelled.append((owner, task))
            raise
        finally:
            self.running_count.subtract([owner, "all"])
        if task.fails:
            raise task.fails("overslept")
        return f"{owner} slept {task.seconds:g} s"


def unlimited(owner: str, task: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


@asynccontextmanager
async def running(naps: SleepTasks) -> AsyncIterator[BackgroundTasks[str, SleepTask]]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(naps.tasks.run())
        await asyncio.sleep(0)
        yield naps.tasks
        task.cancel()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_owner_is_enqueued_when_a_task_ends_and_reads_its_result() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(3)])
        assert tasks.outcomes("a") == {}
        await asyncio.sleep(2.9)
        assert naps.enqueued == []
        await asyncio.sleep(0.2)
    assert naps.enqueued == ["a"]
    assert tasks.outcomes("a") == {SleepTask(3): TaskOutcome("a slept 3 s")}


async def test_task_that_stays_wanted_is_not_restarted_and_keeps_its_outcome() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        for _ in range(4):
            tasks.set_wanted("a", {SleepTask(1)})
            await asyncio.sleep(0.5)
        assert len(naps.started) == len(tasks.outcomes("a")) == 1


async def test_unwanted_task_is_cancelled_and_enqueues_no_owner() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1), SleepTask(5)])
        await asyncio.sleep(2)
        tasks.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(10)
        assert naps.cancelled == [("a", SleepTask(5))]
        tasks.set_wanted("a", [])
        tasks.set_wanted("a", [SleepTask(1)])
        assert tasks.outcomes("a") == {}
    assert naps.enqueued == ["a"]


async def test_forgotten_owner_has_no_outcomes_and_no_tasks() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1), SleepTask(5)])
        tasks.set_wanted("b", [SleepTask(5)])
        await asyncio.sleep(2)
        tasks.forget("a")
        tasks.forget("unknown")
        await asyncio.sleep(2)
        assert naps.cancelled == [("a", SleepTask(5))]
        assert tasks.outcomes("a") == {}
    assert naps.enqueued == ["a"]


async def test_tasks_wanted_before_the_run_start_with_it() -> None:
    naps = SleepTasks()
    naps.tasks.set_wanted("a", [SleepTask(1)])
    naps.tasks.set_wanted("b", [SleepTask(1)])
    naps.tasks.forget("b")
    await asyncio.sleep(5)
    async with running(naps):
        await asyncio.sleep(1.1)
    assert naps.enqueued == ["a"]


async def test_tasks_cancelled_by_the_end_restart_with_the_next_run() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1), SleepTask(2)])
        await asyncio.sleep(1.5)
    assert naps.cancelled == [("a", SleepTask(2))]
    async with running(naps):
        await asyncio.sleep(2.5)
    assert list(tasks.outcomes("a")) == [SleepTask(1), SleepTask(2)]
    assert len(naps.started) == 3


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        pytest.param(UnreachableError, "overslept", id="the server"),
        pytest.param(DlctlError, "overslept", id="a terminal error"),
        pytest.param(TimeoutError, "overslept", id="a deadline"),
        pytest.param(ConnectionResetError, "overslept", id="a connection"),
    ],
)
async def test_failed_task_has_its_error_as_outcome(
    failure: type[Exception], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(fails=failure)])
        await asyncio.sleep(2)
    assert tasks.outcomes("a") == {SleepTask(fails=failure): TaskOutcome(error=error)}
    assert naps.enqueued == ["a"]
    assert not caplog.records


async def _error_of(perform: Callable[[str, str], Awaitable[None]]) -> str:
    """Return the error of the only task."""
    tasks = BackgroundTasks[str, str](
        perform, lambda owner: None, controller="jobs", limiter=unlimited
    )
    tasks.set_wanted("a", ["x"])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(tasks.run())
        await asyncio.sleep(1)
        task.cancel()
    return tasks.outcomes("a")["x"].error


async def test_error_without_a_message_is_named_by_its_class() -> None:
    async def perform(owner: str, task: str) -> None:
        raise TimeoutError

    assert await _error_of(perform) == "TimeoutError"


@pytest.mark.parametrize("failure", [DlctlError, ValueError])
async def test_message_of_an_error_is_kept_as_far_as_an_event_takes_it(
    failure: type[Exception],
) -> None:
    async def perform(owner: str, task: str) -> None:
        raise failure("x" * 100_000)

    assert len(await _error_of(perform)) == MAX_MESSAGE_CHARS


async def test_programming_error_is_logged_once_and_stops_no_other_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1, "secret", fails=KeyError)])
        tasks.set_wanted("b", [SleepTask(2)])
        await asyncio.sleep(3)
    assert tasks.outcomes("a")[SleepTask(1, "secret", KeyError)].error == "KeyError: 'overslept'"
    assert naps.enqueued == ["a", "b"]
    [record] = caplog.records
    assert record.exc_info


async def test_outcome_is_kept_until_the_next_attempt_ends_and_attempts_are_counted() -> None:
    naps = SleepTasks()
    task = SleepTask(1, fails=UnreachableError)
    async with running(naps) as tasks:
        tasks.set_wanted("a", [task])
        await asyncio.sleep(1.5)
        tasks.retry("a", task, after_s=10)
        assert tasks.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=1)}
        await asyncio.sleep(10.5)
        tasks.retry("a", task, after_s=100)
        assert tasks.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=1)}
        await asyncio.sleep(1)
        assert tasks.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=2)}
        await asyncio.sleep(200)
    assert naps.enqueued == ["a", "a"]


async def test_retrying_an_unwanted_task_does_nothing() -> None:
    naps = SleepTasks()
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(2)
        tasks.set_wanted("a", [SleepTask(2)])
        tasks.retry("a", SleepTask(1))
        tasks.retry("b", SleepTask(1))
        await asyncio.sleep(5)
    assert naps.started == [("a", SleepTask(1)), ("a", SleepTask(2))]


async def test_task_waiting_for_its_retry_takes_no_slot() -> None:
    naps = SleepTasks(max_concurrent=1)
    async with running(naps) as tasks:
        tasks.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(1.5)
        tasks.retry("a", SleepTask(1), after_s=100)
        tasks.set_wanted("b", [SleepTask(1)])
        await asyncio.sleep(1.5)
        assert naps.enqueued == ["a", "b"]


async def test_slow_tasks_of_one_owner_do_not_delay_another() -> None:
    naps = SleepTasks(max_concurrent=8)
    async with running(naps) as tasks:
        tasks.set_wanted("slow", [SleepTask(1000, str(n)) for n in range(100)])
        await asyncio.sleep(1)
        tasks.set_wanted("quick", [SleepTask(1)])
        await asyncio.sleep(1.1)
        assert naps.enqueued == ["quick"]
        assert naps.max_running == {"slow": 4, "quick": 1, "all": 5}


async def test_outcome_of_a_task_that_ended_during_cancellation_is_dropped() -> None:
    woken: list[str] = []

    async def stubborn(owner: str, task: str) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError as cancelled:
            raise UnreachableError("the socket was closed") from cancelled
        return "done"

    tasks = BackgroundTasks[str, str](stubborn, woken.append, controller="jobs", limiter=unlimited)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(tasks.run())
        await asyncio.sleep(0)
        tasks.set_wanted("a", ["x"])
        await asyncio.sleep(1)
        tasks.set_wanted("a", ["y"])
        await asyncio.sleep(1)
        assert (tasks.outcomes("a"), woken) == ({}, [])
        task.cancel()


naps_of_owners = st.builds(
    SleepTask,
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from("xyz"),
    st.sampled_from([None, UnreachableError, ValueError]),
)
steps = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sets(naps_of_owners, max_size=6),
        st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(steps)
def test_finally_exactly_the_wanted_tasks_have_outcomes(
    steps: list[tuple[str, set[SleepTask], float]],
) -> None:
    naps = SleepTasks(max_concurrent=3, max_concurrent_per_owner=2)
    last: dict[str, set[SleepTask]] = {}

    async def play() -> None:
        async with running(naps) as tasks:
            for owner, wanted, pause_s in steps:
                tasks.set_wanted(owner, wanted)
                last[owner] = wanted
                await asyncio.sleep(pause_s)
                assert set(tasks.outcomes(owner)) <= wanted
            await asyncio.sleep(200)
            for owner, wanted in last.items():
                outcomes = tasks.outcomes(owner)
                assert set(outcomes) == wanted
                assert all(bool(o.error) == bool(task.fails) for task, o in outcomes.items())

    loop = looptime.new_event_loop(start=0, end=10_000)
    try:
        loop.run_until_complete(play())
    finally:
        loop.close()
    assert naps.max_running["all"] <= 3
    assert all(naps.max_running[owner] <= 2 for owner in "abc")
    assert not +naps.running_count
