import re
import tracemalloc

import pytest

from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.controller.event_correlator import (
    AGGREGATE_PREFIX,
    CorrelatedEvent,
    Event,
    EventCorrelator,
    ObjectReference,
)
from dlctl.local.apiserver.validation.names import dns_subdomain
from tests.support.timing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


@pytest.fixture
def correlator(clock: ManualClock) -> EventCorrelator:
    return EventCorrelator(clock)


def event(
    message: str = "it broke",
    *,
    name: str = "linear",
    uid: str = "1",
    type_: str = "Warning",
    reason: str = "Broken",
) -> Event:
    regarding = ObjectReference(PODS, ObjectKey("ml", name), UID(uid))
    return Event(regarding, type_, reason, message)


def correlated(correlator: EventCorrelator, happened: Event) -> CorrelatedEvent:
    report = correlator.correlate(happened)
    assert report is not None
    return report


def test_first_occurrence_is_a_new_event(correlator: EventCorrelator, clock: ManualClock) -> None:
    happened = event()
    report = correlated(correlator, happened)

    assert (report.event, report.count) == (happened, 1)
    assert report.first_timestamp == report.last_timestamp == clock.now()


def test_event_name_is_the_objects_name_and_a_number(correlator: EventCorrelator) -> None:
    names = {correlated(correlator, event(str(n))).name for n in range(5)}

    assert len(names) == 5
    assert all(re.fullmatch(r"linear\.[0-9a-f]+", name) for name in names)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a" * 236, id="as long as it may be"),
        pytest.param("a" * 253, id="too long"),
        pytest.param("a" * 234 + "-." + "b" * 17, id="cut between words"),
        pytest.param("a" * 235 + "-b." + "b" * 15, id="cut behind a dash"),
    ],
)
def test_event_name_is_valid_for_an_object_with_a_long_name(
    correlator: EventCorrelator, name: str
) -> None:
    named = correlated(correlator, event(name=name)).name
    assert dns_subdomain(named) == []
    assert named.startswith(name[:234])


def test_same_occurrence_raises_the_count_of_the_same_event(
    correlator: EventCorrelator, clock: ManualClock
) -> None:
    first, began = correlated(correlator, event()), clock.now()
    clock.seconds = 7
    second = correlated(correlator, event())

    assert (second.name, second.count) == (first.name, 2)
    assert (second.first_timestamp, second.last_timestamp) == (began, clock.now())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(event("something else"), id="message"),
        pytest.param(event(reason="Other"), id="reason"),
        pytest.param(event(type_="Normal"), id="type"),
        pytest.param(event(name="another"), id="object"),
        pytest.param(event(uid="2"), id="object recreated"),
    ],
)
def test_different_occurrence_is_a_separate_event(
    correlator: EventCorrelator, other: Event
) -> None:
    first = correlated(correlator, event())
    second = correlated(correlator, other)

    assert second.count == 1
    assert second.name != first.name


def test_tenth_and_later_similar_messages_are_combined(
    correlator: EventCorrelator,
) -> None:
    reports = [correlated(correlator, event(f"failure {n}")) for n in range(12)]

    assert [report.count for report in reports] == [1] * 10 + [2, 3]
    assert len({report.name for report in reports}) == 10
    assert [report.event.message for report in reports[9:]] == [
        f"{AGGREGATE_PREFIX}failure {n}" for n in (9, 10, 11)
    ]


def test_equal_messages_are_never_combined(correlator: EventCorrelator) -> None:
    reports = [correlated(correlator, event()) for _ in range(20)]

    assert [report.count for report in reports] == list(range(1, 21))
    assert {report.event.message for report in reports} == {"it broke"}


def test_messages_of_different_reasons_are_not_similar(correlator: EventCorrelator) -> None:
    reports = [
        correlated(correlator, event(f"failure {n}", reason=f"Broken{n % 2}")) for n in range(18)
    ]

    assert all(report.count == 1 for report in reports)


def test_similar_messages_are_counted_from_zero_after_ten_quiet_minutes(
    correlator: EventCorrelator, clock: ManualClock
) -> None:
    for n in range(10):
        correlated(correlator, event(f"failure {n}"))
    clock.seconds = 601
    report = correlated(correlator, event("failure 10"))

    assert report.event.message == "failure 10"
    assert report.count == 1


def test_similar_messages_that_come_slowly_but_steadily_are_combined(
    correlator: EventCorrelator, clock: ManualClock
) -> None:
    messages = []
    for n in range(10):
        clock.seconds = n * 600.0
        messages.append(correlated(correlator, event(f"failure {n}")).event.message)

    assert messages[-1].startswith(AGGREGATE_PREFIX)


def test_noisy_object_gets_a_burst_of_25_events_then_one_every_five_minutes(
    correlator: EventCorrelator, clock: ManualClock
) -> None:
    heard = [correlator.correlate(event()) for _ in range(30)]
    assert [report is not None for report in heard] == [True] * 25 + [False] * 5

    clock.seconds = 299
    assert correlator.correlate(event()) is None
    clock.seconds = 300
    report = correlated(correlator, event())
    assert correlator.correlate(event()) is None

    # Suppressed occurrences still count.
    assert report.count == 32


def test_long_quiet_object_gets_no_more_than_a_burst(
    correlator: EventCorrelator, clock: ManualClock
) -> None:
    correlated(correlator, event())
    clock.seconds = 1e6

    assert sum(correlator.correlate(event()) is not None for _ in range(40)) == 25


def test_noisy_object_or_type_does_not_limit_another(correlator: EventCorrelator) -> None:
    for _ in range(30):
        correlator.correlate(event())

    assert correlator.correlate(event(name="another")) is not None
    assert correlator.correlate(event(type_="Normal")) is not None


def test_cache_is_bounded_and_evicts_the_least_recently_used(
    correlator: EventCorrelator,
) -> None:
    first = correlated(correlator, event(name="first"))
    kept = correlated(correlator, event(name="kept"))
    for n in range(4095):
        correlator.correlate(event(name=f"job-{n}"))
        if n == 2000:
            correlated(correlator, event(name="kept"))

    assert correlated(correlator, event(name="kept")).name == kept.name
    assert correlated(correlator, event(name="first")).name != first.name


def test_cache_is_bounded_for_messages_of_any_length(correlator: EventCorrelator) -> None:
    tracemalloc.start()
    try:
        for number in range(3_000):
            correlator.correlate(event(f"{number}: {'x' * 30_000}", name=f"job-{number % 300}"))
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 8e6
