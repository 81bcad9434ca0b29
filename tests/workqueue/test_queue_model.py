"""The queue against a simple model, step by step."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import hypothesis.strategies as st
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dlctl.workqueue.queue import QueueShutDown, WorkQueue
from tests.workqueue.loops import StandingLoop

T = TypeVar("T")

keys = st.sampled_from("abcdef")
priorities = st.sampled_from([-100, 0, 0, 7])
delays = st.sampled_from([0.0, 1.0, 2.0, 5.0])


@attrs.define
class Model:
    """Ready keys as (key, priority) in order of arrival; sorted whenever one is taken."""

    tenant_of: Callable[[str], int]
    ready: list[tuple[str, int]] = attrs.field(factory=list)
    again: dict[str, int] = attrs.field(factory=dict)
    processing: dict[str, int] = attrs.field(factory=dict)
    waiting: dict[str, tuple[float, int, int]] = attrs.field(factory=dict)
    arrivals: int = 0

    def add(self, key: str, priority: int) -> None:
        waited = self.waiting.pop(key, None)
        if waited:
            priority = max(priority, waited[2])
        if key in self.processing:
            self.again[key] = max(priority, self.again.get(key, priority))
            return
        old = next((entry for entry in self.ready if entry[0] == key), None)
        if old and old[1] >= priority:
            return
        if old:
            self.ready.remove(old)
        self.ready.append((key, priority))

    def add_after(self, key: str, deadline: float, now: float, priority: int) -> None:
        if deadline <= now or key in self.again or any(key == entry[0] for entry in self.ready):
            self.add(key, priority)
            return
        old = self.waiting.get(key)
        if old:
            deadline, priority = min(old[0], deadline), max(old[2], priority)
        if old is None or (deadline, priority) != (old[0], old[2]):
            self.arrivals += 1
            self.waiting[key] = (deadline, self.arrivals, priority)

    def pass_to(self, now: float) -> None:
        due = sorted((entry, key) for key, entry in self.waiting.items() if entry[0] <= now)
        for entry, key in due:
            del self.waiting[key]
            self.add(key, entry[2])

    def take(self, taken: str) -> None:
        """Take a key: of the highest priority, and of these the oldest of its tenant."""
        top = max(priority for _, priority in self.ready)
        tenant = self.tenant_of(taken)
        oldest = next(k for k, p in self.ready if p == top and self.tenant_of(k) == tenant)
        assert taken == oldest
        self.ready.remove((taken, top))
        self.processing[taken] = top

    def done(self, key: str) -> None:
        del self.processing[key]
        if key in self.again:
            self.add(key, self.again.pop(key))


class QueueMachine(RuleBasedStateMachine):
    """Waiting workers are real tasks that may be cancelled at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = StandingLoop()
        self.queue = WorkQueue[str](tenant_of=self.tenant_of)
        self.model = Model(self.tenant_of)
        self.workers: list[asyncio.Task[str]] = []
        self.agrees = True

    @staticmethod
    def tenant_of(key: str) -> int:
        return 0

    def within(self, do: Callable[[], T]) -> T:
        """Call a function on the loop, and let all its effects settle."""

        self.agrees = False

        async def call() -> T:
            result = do()
            for _ in range(5):
                await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(call())

    def settle(self) -> None:
        """Account for the workers that have got a key, in order of arrival."""
        for worker in [worker for worker in self.workers if worker.done()]:
            self.workers.remove(worker)
            key = worker.result()
            assert key not in self.model.processing
            self.model.take(key)

    @rule(key=keys, priority=priorities)
    def add(self, key: str, priority: int) -> None:
        self.model.add(key, priority)
        self.within(lambda: self.queue.add(key, priority=priority))
        self.settle()

    @rule(key=keys, delay_s=delays, priority=priorities)
    def add_after(self, key: str, delay_s: float, priority: int) -> None:
        self.model.add_after(key, self.loop.now + delay_s, self.loop.now, priority)
        self.within(lambda: self.queue.add_after(key, delay_s, priority=priority))
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.loop.now += seconds
        self.model.pass_to(self.loop.now)
        self.within(lambda: None)
        self.settle()

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def ask(self) -> None:
        async def start() -> asyncio.Task[str]:
            return asyncio.ensure_future(self.queue.get())

        self.workers.append(self.loop.run_until_complete(start()))
        self.within(lambda: None)
        self.settle()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), key=keys, priority=priorities)
    def wake_and_cancel_in_one_turn(self, data: st.DataObject, key: str, priority: int) -> None:
        worker = data.draw(st.sampled_from(self.workers))

        def both() -> None:
            self.queue.add(key, priority=priority)
            worker.cancel()

        self.model.add(key, priority)
        self.workers.remove(worker)
        self.within(both)
        assert worker.cancelled()
        self.settle()

    @precondition(lambda self: self.model.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.processing)))
        self.model.done(key)
        self.within(lambda: self.queue.done(key))
        self.settle()

    @invariant()
    def as_many_are_ready_as_in_the_model(self) -> None:
        assert len(self.queue) == len(self.model.ready)
        assert not (self.workers and self.model.ready), "a worker waits beside a ready key"
        self.agrees = True

    def teardown(self) -> None:
        """Shut down: accepted keys are still handed out, then every worker ends."""
        try:
            # After a failed step the shutdown would only add another failure, or hang.
            self.loop.run_until_complete(self.end() if self.agrees else self.cancel())
        finally:
            self.loop.close()

    async def cancel(self) -> None:
        for worker in self.workers:
            worker.cancel()
        await asyncio.gather(*self.workers, return_exceptions=True)

    async def end(self) -> None:
        self.queue.shut_down()
        for worker in self.workers:
            assert await _raises_shut_down(worker)
        while self.model.ready or self.model.processing:
            while self.model.ready:
                self.model.take(await self.queue.get())
            for key in list(self.model.processing):
                self.model.done(key)
                self.queue.done(key)
        assert await _raises_shut_down(self.queue.get())


class QueueOfTenantsMachine(QueueMachine):
    """The keys are of four tenants: one key or two of each."""

    @staticmethod
    def tenant_of(key: str) -> int:
        return ord(key) // 2


async def _raises_shut_down(get: Awaitable[str]) -> bool:
    try:
        await get
    except QueueShutDown:
        return True
    return False


TestQueueBehavesLikeTheModel = QueueMachine.TestCase
TestQueueOfTenantsBehavesLikeTheModel = QueueOfTenantsMachine.TestCase
TestQueueBehavesLikeTheModel.settings = TestQueueOfTenantsBehavesLikeTheModel.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    # Shrinking takes longer than a test may; enable it by hand for a failure.
    phases=[Phase.reuse, Phase.generate],
)
