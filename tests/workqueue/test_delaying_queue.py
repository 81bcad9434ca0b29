import asyncio

import pytest

from dlctl.backoff import Backoff
from dlctl.workqueue.item_backoff import ItemBackoff
from dlctl.workqueue.queue import WorkQueue
from tests.workqueue.loops import StandingLoop

pytestmark = pytest.mark.looptime

TICK_S = 0.001


async def taken(queue: WorkQueue[str]) -> list[str]:
    return [await queue.get() for _ in range(len(queue))]


async def test_key_is_ready_after_its_delay(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    await asyncio.sleep(5 - TICK_S)
    assert len(queue) == 0

    await asyncio.sleep(2 * TICK_S)

    assert await taken(queue) == ["a"]


async def test_delayed_key_is_handed_out_once(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    await asyncio.sleep(6)
    queue.done(await queue.get())

    await asyncio.sleep(60)

    assert len(queue) == 0


async def test_waiting_worker_wakes_at_the_deadline(queue: WorkQueue[str]) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    queue.add_after("a", 5)

    await queue.get()

    assert loop.time() - started == pytest.approx(5)


async def test_later_deadline_of_a_waiting_key_is_ignored(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    queue.add_after("a", 9)
    await asyncio.sleep(6)
    assert await taken(queue) == ["a"]
    queue.done("a")

    await asyncio.sleep(10)

    assert len(queue) == 0


async def test_earlier_deadline_of_a_waiting_key_wins(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 9)
    queue.add_after("a", 5)
    await asyncio.sleep(6)
    assert await taken(queue) == ["a"]
    queue.done("a")

    await asyncio.sleep(10)

    assert len(queue) == 0


async def test_shorter_delay_added_second_comes_first(queue: WorkQueue[str]) -> None:
    queue.add_after("slow", 10)
    queue.add_after("fast", 1)
    await asyncio.sleep(2)
    assert await taken(queue) == ["fast"]

    await asyncio.sleep(9)

    assert await taken(queue) == ["slow"]


def test_keys_due_together_come_in_order_of_their_deadlines() -> None:
    loop = StandingLoop()
    queue = WorkQueue[str]()

    async def wait() -> list[str]:
        for key, delay_s in (("c", 0.3), ("a", 0.1), ("b", 0.2)):
            queue.add_after(key, delay_s)
        loop.now = 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return await taken(queue)

    try:
        assert loop.run_until_complete(wait()) == ["a", "b", "c"]
    finally:
        loop.close()


async def test_priority_applies_once_a_key_is_ready(queue: WorkQueue[str]) -> None:
    queue.add_after("late but high", 2, priority=1)
    queue.add_after("early but low", 1, priority=-1)
    queue.add("plain")
    await asyncio.sleep(3)

    assert await taken(queue) == ["late but high", "plain", "early but low"]


async def test_key_that_becomes_ready_queues_behind_its_priority(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.add("b")
    await asyncio.sleep(2)

    assert await taken(queue) == ["b", "a"]


async def test_highest_priority_of_several_delayed_adds_counts(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1, priority=-5)
    queue.add_after("a", 2, priority=5)
    queue.add("b", priority=4)
    await asyncio.sleep(1 + TICK_S)

    assert await taken(queue) == ["a", "b"]


async def test_plain_add_makes_a_waiting_key_ready_and_cancels_the_delay(
    queue: WorkQueue[str],
) -> None:
    queue.add_after("a", 5)
    queue.add("a")
    assert await taken(queue) == ["a"]
    queue.done("a")

    await asyncio.sleep(10)

    assert len(queue) == 0


async def test_key_made_ready_keeps_its_priority(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5, priority=5)
    queue.add("b", priority=1)
    queue.add("a")

    assert await taken(queue) == ["a", "b"]


async def test_delayed_add_of_a_ready_key_only_raises_its_priority(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    queue.add("b", priority=1)
    queue.add_after("a", 5, priority=2)
    assert await taken(queue) == ["a", "b"]
    queue.done("a")

    await asyncio.sleep(10)

    assert len(queue) == 0


async def test_delay_of_zero_or_less_adds_at_once(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0)
    queue.add_after("b", -1)

    assert await taken(queue) == ["a", "b"]


async def test_key_due_while_processing_waits_until_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    await asyncio.sleep(2)
    assert len(queue) == 0

    queue.done("a")

    assert len(queue) == 1


async def test_requeued_key_keeps_the_priority_it_was_taken_with(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=-100)
    await queue.get()
    queue.add_after("a", 1)
    queue.done("a")
    queue.add("b", priority=-99)
    await asyncio.sleep(2)

    assert await taken(queue) == ["b", "a"]


async def test_rate_limited_delay_doubles_until_forgotten() -> None:
    queue = WorkQueue[str](backoff=ItemBackoff(Backoff(base_s=1, cap_s=100)))

    async def waited() -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        queue.add_rate_limited("a")
        queue.done(await queue.get())
        return loop.time() - started

    assert [await waited() for _ in range(3)] == pytest.approx([1, 2, 4])
    assert queue.num_requeues("a") == 3
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert await waited() == pytest.approx(1)


async def test_rate_limits_are_per_key() -> None:
    queue = WorkQueue[str](backoff=ItemBackoff(Backoff(base_s=1, cap_s=100)))
    for key in "abc":
        queue.add_rate_limited(key)
    await asyncio.sleep(1 + TICK_S)

    assert await taken(queue) == ["a", "b", "c"]


async def test_forgetting_a_key_does_not_cancel_its_delay(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.forget("a")
    await asyncio.sleep(2)

    assert len(queue) == 1


async def test_one_timer_serves_all_waiting_keys(
    queue: WorkQueue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    timers = 0
    call_at = loop.call_at

    def counted(*args: object, **kwargs: object) -> asyncio.TimerHandle:
        nonlocal timers
        timers += 1
        return call_at(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_at", counted)
    for number in range(1000):
        queue.add_after(str(number), 10 + number)

    assert timers == 1


async def test_deadlines_of_a_key_made_ready_repeatedly_do_not_accumulate(
    queue: WorkQueue[str],
) -> None:
    for _ in range(1000):
        queue.add_after("a", 3600)
        queue.add("a")
        queue.done(await queue.get())

    assert len(queue._delaying._heap) < 100


async def test_event_loop_runs_between_many_keys_that_are_due_at_the_same_time(
    queue: WorkQueue[str],
) -> None:
    for number in range(2000):
        queue.add_after(f"key-{number}", 5)
    await asyncio.sleep(5 - TICK_S)
    seen = set[int]()
    while len(queue) < 2000:
        await asyncio.sleep(TICK_S if not queue else 0)
        seen.add(len(queue))
    assert len(seen) >= 8
    assert await taken(queue) == [f"key-{number}" for number in range(2000)]
