import datetime
import re
import tracemalloc

import pytest

from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.reconcilers.correlator import COMBINED, Correlator, Occurrence, Regarding, Report

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class FakeClock:
    """Stands still until it is told otherwise."""

    time_s = 0.0

    def now(self) -> datetime.datetime:
        return NOW + datetime.timedelta(seconds=self.time_s)

    def monotonic(self) -> float:
        return self.time_s


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def correlator(clock: FakeClock) -> Correlator:
    return Correlator(clock)


def occurrence(
    message: str = "it broke",
    *,
    name: str = "linear",
    uid: str = "1",
    type_: str = "Warning",
    reason: str = "Broken",
) -> Occurrence:
    regarding = Regarding(PODS, ObjectKey("ml", name), UID(uid))
    return Occurrence(regarding, type_, reason, message)


def reported(correlator: Correlator, happened: Occurrence) -> Report:
    report = correlator.report(happened)
    assert report is not None
    return report


def test_first_occurrence_is_a_new_event(correlator: Correlator, clock: FakeClock) -> None:
    happened = occurrence()
    report = reported(correlator, happened)

    assert (report.occurrence, report.count) == (happened, 1)
    assert report.first == report.last == clock.now()


def test_name_of_an_event_is_that_of_its_object_and_a_number(correlator: Correlator) -> None:
    names = {reported(correlator, occurrence(str(n))).name for n in range(5)}

    assert len(names) == 5
    assert all(re.fullmatch(r"linear\.[0-9a-f]+", name) for name in names)


def test_same_occurrence_raises_the_count_of_the_same_event(
    correlator: Correlator, clock: FakeClock
) -> None:
    first = reported(correlator, occurrence())
    clock.time_s = 7
    second = reported(correlator, occurrence())

    assert (second.name, second.count) == (first.name, 2)
    assert (second.first, second.last) == (NOW, NOW + datetime.timedelta(seconds=7))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(occurrence("something else"), id="message"),
        pytest.param(occurrence(reason="Other"), id="reason"),
        pytest.param(occurrence(type_="Normal"), id="type"),
        pytest.param(occurrence(name="another"), id="object"),
        pytest.param(occurrence(uid="2"), id="object created anew"),
    ],
)
def test_occurrence_that_differs_is_an_event_of_its_own(
    correlator: Correlator, other: Occurrence
) -> None:
    first = reported(correlator, occurrence())
    second = reported(correlator, other)

    assert second.count == 1
    assert second.name != first.name


def test_tenth_different_message_is_combined_with_those_that_follow(
    correlator: Correlator,
) -> None:
    reports = [reported(correlator, occurrence(f"failure {n}")) for n in range(12)]

    assert [report.count for report in reports] == [1] * 10 + [2, 3]
    assert len({report.name for report in reports}) == 10
    assert [report.occurrence.message for report in reports[9:]] == [
        f"{COMBINED}failure {n}" for n in (9, 10, 11)
    ]


def test_equal_messages_are_never_combined(correlator: Correlator) -> None:
    reports = [reported(correlator, occurrence()) for _ in range(20)]

    assert [report.count for report in reports] == list(range(1, 21))
    assert {report.occurrence.message for report in reports} == {"it broke"}


def test_messages_of_different_reasons_are_not_similar(correlator: Correlator) -> None:
    reports = [
        reported(correlator, occurrence(f"failure {n}", reason=f"Broken{n % 2}")) for n in range(18)
    ]

    assert all(report.count == 1 for report in reports)


def test_similar_messages_are_counted_anew_after_ten_quiet_minutes(
    correlator: Correlator, clock: FakeClock
) -> None:
    for n in range(10):
        reported(correlator, occurrence(f"failure {n}"))
    clock.time_s = 601
    report = reported(correlator, occurrence("failure 10"))

    assert report.occurrence.message == "failure 10"
    assert report.count == 1


def test_similar_messages_that_come_slowly_but_steadily_are_combined(
    correlator: Correlator, clock: FakeClock
) -> None:
    messages = []
    for n in range(10):
        clock.time_s = n * 600.0
        messages.append(reported(correlator, occurrence(f"failure {n}")).occurrence.message)

    assert messages[-1].startswith(COMBINED)


def test_object_that_goes_on_is_heard_25_times_and_then_every_five_minutes(
    correlator: Correlator, clock: FakeClock
) -> None:
    heard = [correlator.report(occurrence()) for _ in range(30)]
    assert [report is not None for report in heard] == [True] * 25 + [False] * 5

    clock.time_s = 299
    assert correlator.report(occurrence()) is None
    clock.time_s = 300
    report = reported(correlator, occurrence())
    assert correlator.report(occurrence()) is None

    # What was not heard has happened all the same.
    assert report.count == 32


def test_object_that_was_quiet_for_long_has_no_more_than_a_burst_again(
    correlator: Correlator, clock: FakeClock
) -> None:
    reported(correlator, occurrence())
    clock.time_s = 1e6

    assert sum(correlator.report(occurrence()) is not None for _ in range(40)) == 25


def test_noise_of_one_object_or_type_does_not_silence_another(correlator: Correlator) -> None:
    for _ in range(30):
        correlator.report(occurrence())

    assert correlator.report(occurrence(name="another")) is not None
    assert correlator.report(occurrence(type_="Normal")) is not None


def test_memory_is_bounded_by_forgetting_what_was_seen_longest_ago(
    correlator: Correlator,
) -> None:
    first = reported(correlator, occurrence(name="first"))
    kept = reported(correlator, occurrence(name="kept"))
    for n in range(4095):
        correlator.report(occurrence(name=f"job-{n}"))
        if n == 2000:
            reported(correlator, occurrence(name="kept"))

    assert reported(correlator, occurrence(name="kept")).name == kept.name
    assert reported(correlator, occurrence(name="first")).name != first.name


def test_memory_is_bounded_however_long_the_messages_are(correlator: Correlator) -> None:
    tracemalloc.start()
    try:
        for number in range(3_000):
            correlator.report(occurrence(f"{number}: {'x' * 30_000}", name=f"job-{number % 300}"))
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 8e6
