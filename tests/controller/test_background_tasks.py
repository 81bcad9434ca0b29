"""Errands on the clock of the loop: what they take is simulated, and takes no time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import looptime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlctl.controller.background_tasks import BackgroundTasks, TaskOutcome
from dlctl.errors import DlctlError
from dlctl.kube.errors import UnreachableError

pytestmark = pytest.mark.looptime


@attrs.frozen
class SleepTask:
    """Takes so long, and then ends as it says."""

    seconds: float = 1.0
    name: str = ""
    fails: type[Exception] | None = None


@attrs.define
class SleepTasks:
    """Carries naps out, and remembers who slept and who was woken."""

    tasks: BackgroundTasks[str, SleepTask] = attrs.field(init=False)
    started: list[tuple[str, SleepTask]] = attrs.field(factory=list)
    cancelled: list[tuple[str, SleepTask]] = attrs.field(factory=list)
    enqueued: list[str] = attrs.field(factory=list)
    running_count: Counter[str] = attrs.field(factory=Counter)
    max_running: Counter[str] = attrs.field(factory=Counter)
    limits: Mapping[str, Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.tasks = BackgroundTasks(self.take, self.enqueued.append, **self.limits)

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


@asynccontextmanager
async def running(naps: SleepTasks) -> AsyncIterator[BackgroundTasks[str, SleepTask]]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(naps.tasks.run())
        await asyncio.sleep(0)
        yield naps.tasks
        task.cancel()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_owner_is_woken_when_an_errand_has_ended_and_reads_its_result() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(3)])
        assert errands.outcomes("a") == {}
        await asyncio.sleep(2.9)
        assert naps.enqueued == []
        await asyncio.sleep(0.2)
    assert naps.enqueued == ["a"]
    assert errands.outcomes("a") == {SleepTask(3): TaskOutcome("a slept 3 s")}


async def test_errand_that_is_wanted_again_neither_starts_anew_nor_loses_its_outcome() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        for _ in range(4):
            errands.set_wanted("a", {SleepTask(1)})
            await asyncio.sleep(0.5)
        assert len(naps.started) == len(errands.outcomes("a")) == 1


async def test_errand_that_is_no_longer_wanted_is_given_up_and_wakes_nobody() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1), SleepTask(5)])
        await asyncio.sleep(2)
        errands.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(10)
        assert naps.cancelled == [("a", SleepTask(5))]
        errands.set_wanted("a", [])
        errands.set_wanted("a", [SleepTask(1)])
        assert errands.outcomes("a") == {}
    assert naps.enqueued == ["a"]


async def test_forgotten_owner_has_no_outcomes_and_nothing_runs_for_it() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1), SleepTask(5)])
        errands.set_wanted("b", [SleepTask(5)])
        await asyncio.sleep(2)
        errands.forget("a")
        errands.forget("unknown")
        await asyncio.sleep(2)
        assert naps.cancelled == [("a", SleepTask(5))]
        assert errands.outcomes("a") == {}
    assert naps.enqueued == ["a"]


async def test_errands_that_were_wanted_before_it_runs_start_with_it() -> None:
    naps = SleepTasks()
    naps.tasks.set_wanted("a", [SleepTask(1)])
    naps.tasks.set_wanted("b", [SleepTask(1)])
    naps.tasks.forget("b")
    await asyncio.sleep(5)
    async with running(naps):
        await asyncio.sleep(1.1)
    assert naps.enqueued == ["a"]


async def test_what_was_cut_short_by_the_end_starts_anew_with_the_next_run() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1), SleepTask(2)])
        await asyncio.sleep(1.5)
    assert naps.cancelled == [("a", SleepTask(2))]
    async with running(naps):
        await asyncio.sleep(2.5)
    assert list(errands.outcomes("a")) == [SleepTask(1), SleepTask(2)]
    assert len(naps.started) == 3


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        pytest.param(UnreachableError, "overslept", id="the server"),
        pytest.param(DlctlError, "overslept", id="our own"),
        pytest.param(TimeoutError, "overslept", id="a deadline"),
        pytest.param(ConnectionResetError, "overslept", id="a connection"),
    ],
)
async def test_errand_that_fails_says_so_in_its_outcome(
    failure: type[Exception], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(fails=failure)])
        await asyncio.sleep(2)
    assert errands.outcomes("a") == {SleepTask(fails=failure): TaskOutcome(error=error)}
    assert naps.enqueued == ["a"]
    assert not caplog.records


async def test_failure_without_words_is_called_by_its_name() -> None:
    async def perform(owner: str, errand: str) -> None:
        raise TimeoutError

    errands = BackgroundTasks[str, str](perform, lambda owner: None)
    errands.set_wanted("a", ["x"])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(errands.run())
        await asyncio.sleep(1)
        task.cancel()
    assert errands.outcomes("a")["x"].error == "TimeoutError"


async def test_programming_error_is_logged_once_and_stops_no_other_errand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1, "secret", fails=KeyError)])
        errands.set_wanted("b", [SleepTask(2)])
        await asyncio.sleep(3)
    assert errands.outcomes("a")[SleepTask(1, "secret", KeyError)].error == "KeyError: 'overslept'"
    assert naps.enqueued == ["a", "b"]
    [record] = caplog.records
    assert record.exc_info
    assert (record.__dict__["owner"], record.__dict__["task"]) == ("a", "SleepTask")


async def test_outcome_holds_until_the_next_try_has_ended_and_tries_are_counted() -> None:
    naps = SleepTasks()
    task = SleepTask(1, fails=UnreachableError)
    async with running(naps) as errands:
        errands.set_wanted("a", [task])
        await asyncio.sleep(1.5)
        errands.retry("a", task, after_s=10)
        assert errands.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=1)}
        await asyncio.sleep(10.5)
        errands.retry("a", task, after_s=100)
        assert errands.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=1)}
        await asyncio.sleep(1)
        assert errands.outcomes("a") == {task: TaskOutcome(error="overslept", attempts=2)}
    assert naps.enqueued == ["a", "a"]


async def test_retry_of_what_is_not_wanted_does_nothing() -> None:
    naps = SleepTasks()
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(2)
        errands.set_wanted("a", [SleepTask(2)])
        errands.retry("a", SleepTask(1))
        errands.retry("b", SleepTask(1))
        await asyncio.sleep(5)
    assert naps.started == [("a", SleepTask(1)), ("a", SleepTask(2))]


async def test_errand_that_waits_for_its_next_try_takes_nobodys_turn() -> None:
    naps = SleepTasks(limits={"max_concurrent": 1})
    async with running(naps) as errands:
        errands.set_wanted("a", [SleepTask(1)])
        await asyncio.sleep(1.5)
        errands.retry("a", SleepTask(1), after_s=100)
        errands.set_wanted("b", [SleepTask(1)])
        await asyncio.sleep(1.5)
        assert naps.enqueued == ["a", "b"]


async def test_slow_errands_of_one_owner_hold_up_no_other() -> None:
    naps = SleepTasks(limits={"max_concurrent": 8, "max_concurrent_per_owner": 4})
    async with running(naps) as errands:
        errands.set_wanted("slow", [SleepTask(1000, str(n)) for n in range(100)])
        await asyncio.sleep(1)
        errands.set_wanted("quick", [SleepTask(1)])
        await asyncio.sleep(1.1)
        assert naps.enqueued == ["quick"]
        assert naps.max_running == {"slow": 4, "quick": 1, "all": 5}


async def test_outcome_of_an_errand_that_ended_as_it_was_given_up_is_dropped() -> None:
    woken: list[str] = []

    async def stubborn(owner: str, errand: str) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError as cancelled:
            raise UnreachableError("the socket was closed") from cancelled
        return "done"

    errands = BackgroundTasks[str, str](stubborn, woken.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(errands.run())
        await asyncio.sleep(0)
        errands.set_wanted("a", ["x"])
        await asyncio.sleep(1)
        errands.set_wanted("a", ["y"])
        await asyncio.sleep(1)
        assert (errands.outcomes("a"), woken) == ({}, [])
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
def test_in_the_end_all_that_is_wanted_has_an_outcome_and_nothing_else(
    steps: list[tuple[str, set[SleepTask], float]],
) -> None:
    naps = SleepTasks(limits={"max_concurrent": 3, "max_concurrent_per_owner": 2})
    last: dict[str, set[SleepTask]] = {}

    async def play() -> None:
        async with running(naps) as errands:
            for owner, wanted, pause_s in steps:
                errands.set_wanted(owner, wanted)
                last[owner] = wanted
                await asyncio.sleep(pause_s)
                assert set(errands.outcomes(owner)) <= wanted
            await asyncio.sleep(200)
            for owner, wanted in last.items():
                outcomes = errands.outcomes(owner)
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
