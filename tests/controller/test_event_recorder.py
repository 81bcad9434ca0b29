import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from dlctl.api.meta import PODS, UID, ObjectKey, ObjectMeta, Resource
from dlctl.controller import event_recorder
from dlctl.controller.event_recorder import EventRecorder
from dlctl.errors import MAX_REASON_CHARS
from dlctl.kube.errors import (
    AlreadyExistsError,
    ForbiddenError,
    NamespaceTerminatingError,
    NotFoundError,
    UnexpectedResponseError,
    UnreachableError,
)
from dlctl.metrics import Metrics
from tests.support.timing import LoopClock

pytestmark = pytest.mark.looptime

JOB = ObjectMeta(name="linear", namespace="ml", uid=UID("job-uid"))
NOT_FOUND = NotFoundError("no such event", code=404, reason="NotFound")
NO_NAMESPACE = NotFoundError('namespaces "ml" not found', code=404, reason="NotFound")
FORBIDDEN = ForbiddenError("no rights", code=403, reason="Forbidden")
TERMINATING = NamespaceTerminatingError("the namespace goes away", code=403, reason="Forbidden")
EXISTS = AlreadyExistsError("there is one", code=409, reason="AlreadyExists")
UNREACHABLE = UnreachableError("connection refused")


@attrs.define
class FakeSink:
    """A server that fails the first requests with the given errors, and accepts the rest."""

    errors: list[Exception] = attrs.field(factory=list)
    delay_s: float = 0.0
    created: list[Mapping[str, Any]] = attrs.field(factory=list)
    patched: list[tuple[ObjectKey, Mapping[str, Any]]] = attrs.field(factory=list)
    tried_at: list[float] = attrs.field(factory=list)

    async def create(self, _: Resource, namespace: str, body: Mapping[str, Any]) -> None:
        await self._answer()
        assert namespace == body["metadata"]["namespace"]
        self.created.append(body)

    async def patch(self, _: Resource, key: ObjectKey, body: Mapping[str, Any]) -> None:
        await self._answer()
        self.patched.append((key, body))

    async def _answer(self) -> None:
        self.tried_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.delay_s)
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def sink() -> FakeSink:
    return FakeSink()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def recorder(sink: FakeSink, metrics: Metrics) -> EventRecorder:
    return EventRecorder(sink, clock=LoopClock(), metrics=metrics)


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    """Run the recorder in the background; on exit, send everything that was recorded."""
    async with asyncio.TaskGroup() as group:
        group.create_task(recorder.run())
        yield
        recorder.close()


def warn(recorder: EventRecorder, message: str = "it broke") -> None:
    recorder.record(PODS, JOB, "Warning", "Broken", message)


def dropped(metrics: Metrics, reason: str) -> float:
    name = "dlctl_events_dropped_total"
    return metrics.registry.get_sample_value(name, {"reason": reason}) or 0


async def test_event_names_object_reason_time_and_source(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    async with running(recorder):
        warn(recorder)

    [body] = sink.created
    assert body["metadata"]["name"].startswith("linear.")
    assert body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ml",
        "name": "linear",
        "uid": "job-uid",
    }
    assert (body["type"], body["reason"], body["message"]) == ("Warning", "Broken", "it broke")
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-01-01T12:00:00Z"
    assert (body["count"], body["source"]) == (1, {"component": "dlctl"})


async def test_event_source_is_configurable(sink: FakeSink, metrics: Metrics) -> None:
    recorder = EventRecorder(sink, clock=LoopClock(), metrics=metrics, component="dlctl-node")
    async with running(recorder):
        warn(recorder)

    assert sink.created[0]["source"] == {"component": "dlctl-node"}


async def test_repeated_event_is_patched(recorder: EventRecorder, sink: FakeSink) -> None:
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(90)
        warn(recorder)

    [(key, body)] = sink.patched
    assert key == ObjectKey("ml", sink.created[0]["metadata"]["name"])
    assert body == {"count": 2, "lastTimestamp": "2026-01-01T12:01:30Z", "message": "it broke"}


async def test_repeated_event_that_expired_on_the_server_is_created_again(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(1)
        sink.errors = [NOT_FOUND]
        warn(recorder)

    assert [body["count"] for body in sink.created] == [1, 2]
    assert "resourceVersion" not in sink.created[1]["metadata"]


async def test_rejected_event_is_dropped_after_one_attempt(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    sink.errors = [FORBIDDEN]
    async with running(recorder):
        warn(recorder, "first")
        warn(recorder, "second")
        await asyncio.sleep(60)

    assert [body["message"] for body in sink.created] == ["second"]
    assert len(sink.tried_at) == 2
    assert dropped(metrics, "rejected") == 1


async def test_only_rejections_that_are_not_expected_are_warned_of(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    sink.errors = [TERMINATING, NO_NAMESPACE, FORBIDDEN]
    async with running(recorder):
        warn(recorder, "first")
        warn(recorder, "second")
        warn(recorder, "third")
        await asyncio.sleep(60)

    assert dropped(metrics, "rejected") == 3
    assert [vars(record)["error"] for record in caplog.records] == ["no rights"]


async def test_unreachable_server_is_tried_twelve_times_ten_seconds_apart(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    sink.errors = [UNREACHABLE] * 100
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(1000)

    assert len(sink.tried_at) == 12
    pauses = [after - before for before, after in itertools.pairwise(sink.tried_at)]
    assert 0 <= pauses[0] <= 10
    assert pauses[1:] == pytest.approx([10] * 10)
    assert dropped(metrics, "unreachable") == 1


async def test_event_is_recorded_when_the_server_comes_back(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    sink.errors = [UNREACHABLE] * 3
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(1000)

    assert len(sink.created) == 1


async def test_create_whose_response_was_lost_counts_as_done(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    sink.errors = [UNREACHABLE, EXISTS]
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(1000)

    assert len(sink.tried_at) == 2
    assert dropped(metrics, "rejected") == 0


async def test_closing_recorder_makes_only_one_attempt(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    sink.errors = [UNREACHABLE] * 100
    async with running(recorder):
        for number in range(3):
            warn(recorder, str(number))

    assert len(sink.tried_at) == 3
    assert dropped(metrics, "unreachable") == 3


async def test_closing_ends_a_pause_between_two_attempts(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    sink.errors = [UNREACHABLE] * 100
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(25)

    assert asyncio.get_running_loop().time() == pytest.approx(25)


async def test_slow_server_loses_no_event_even_when_the_recorder_closes(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    sink.delay_s = 3
    async with running(recorder):
        for number in range(9):
            warn(recorder, str(number))

    assert [body["message"] for body in sink.created] == [str(number) for number in range(9)]


async def test_full_queue_drops_new_events_and_never_blocks(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    for number in range(event_recorder.MAX_QUEUED_EVENTS + 5):
        about = ObjectMeta(name=f"job-{number}", namespace="ml", uid=UID(str(number)))
        recorder.record(PODS, about, "Normal", "Started", "it runs")
    async with running(recorder):
        pass

    assert len(sink.created) == event_recorder.MAX_QUEUED_EVENTS
    assert dropped(metrics, "full") == 5


async def test_many_events_of_one_object_do_not_displace_those_of_another(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    for number in range(2 * event_recorder.MAX_QUEUED_EVENTS):
        recorder.record(PODS, JOB, "Normal", f"Reason{number}", "said")
    other = ObjectMeta(name="other", namespace="quiet", uid=UID("other"))
    recorder.record(PODS, other, "Normal", "Started", "it runs")
    async with running(recorder):
        pass

    assert "it runs" in {body["message"] for body in sink.created}
    assert dropped(metrics, "full") == 0


def record_events_of(recorder: EventRecorder, namespace: str, count: int) -> None:
    for number in range(count):
        busy = ObjectMeta(
            name=f"job-{number}", namespace=namespace, uid=UID(f"{namespace}-{number}")
        )
        recorder.record(PODS, busy, "Normal", "Started", "it runs")


async def test_many_events_of_one_namespace_do_not_displace_those_of_another(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    record_events_of(recorder, "busy", event_recorder.MAX_QUEUED_EVENTS)
    record_events_of(recorder, "quiet", 2)
    async with running(recorder):
        pass

    names = [body["involvedObject"]["name"] for body in sink.created]
    namespaces = [body["metadata"]["namespace"] for body in sink.created]
    assert namespaces[:5] == ["busy", "quiet", "busy", "quiet", "busy"]
    assert [n for n, of in zip(names, namespaces, strict=True) if of == "quiet"] == [
        "job-0",
        "job-1",
    ]
    assert len(names) == event_recorder.MAX_QUEUED_EVENTS
    assert dropped(metrics, "full") == 2


async def test_long_reason_is_truncated(recorder: EventRecorder, sink: FakeSink) -> None:
    recorder.record(PODS, JOB, "Normal", "R" * 100_000, "said")
    async with running(recorder):
        pass

    assert len(sink.created[0]["reason"]) == MAX_REASON_CHARS


async def test_closed_recorder_drops_events(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    recorder.close()
    warn(recorder)
    await recorder.run()

    assert sink.created == []
    assert dropped(metrics, "closing") == 1


async def test_noisy_object_is_rate_limited(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    async with running(recorder):
        for _ in range(40):
            warn(recorder)

    assert len(sink.created) + len(sink.patched) == 25
    assert dropped(metrics, "rate limited") == 15


async def test_long_message_is_truncated(recorder: EventRecorder, sink: FakeSink) -> None:
    async with running(recorder):
        warn(recorder, "x" * 5000)
        warn(recorder, "x" * 5000)

    assert len(sink.created[0]["message"]) == len(sink.patched[0][1]["message"]) == 1024


async def test_cancelling_the_recorder_stops_its_attempts(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    sink.errors = [UNREACHABLE] * 100
    warn(recorder)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(15):
            await recorder.run()

    assert len(asyncio.all_tasks()) == 1


async def test_event_is_retried_after_an_error_page_of_a_proxy(
    recorder: EventRecorder, sink: FakeSink
) -> None:
    sink.errors = [UnexpectedResponseError("Object: JSON is malformed")]
    async with running(recorder):
        warn(recorder)
        await asyncio.sleep(30)
        assert len(sink.created) == 1


async def test_unforeseen_error_costs_one_event(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    sink.errors = [RuntimeError("a bug")]
    async with running(recorder):
        warn(recorder, "one")
        warn(recorder, "two")
        await asyncio.sleep(1)
        assert [event["message"] for event in sink.created] == ["two"]
    assert dropped(metrics, "error") == 1
    assert "a bug" in caplog.text


async def test_events_left_at_the_end_are_counted(
    recorder: EventRecorder, sink: FakeSink, metrics: Metrics
) -> None:
    sink.delay_s = 1e6
    for number in range(3):
        warn(recorder, str(number))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        await asyncio.sleep(1)
        running.cancel()
    assert dropped(metrics, "closing") == 2
