import asyncio
from collections.abc import Callable, Sequence

import attrs
import pytest

from dlctl.workqueue.queue import WorkQueue

pytestmark = pytest.mark.looptime


@attrs.define
class RecordingMetrics:
    """Records the metrics of a queue."""

    depths: dict[int, int] = attrs.field(factory=dict)
    adds: int = 0
    retries: int = 0
    waits: list[float] = attrs.field(factory=list)
    works: list[float] = attrs.field(factory=list)
    ages_s: Callable[[], Sequence[float]] = tuple

    def depth(self, priority: int, keys: int) -> None:
        self.depths[priority] = keys

    def added(self) -> None:
        self.adds += 1

    def retried(self) -> None:
        self.retries += 1

    def waited(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))

    def worked(self, seconds: float) -> None:
        self.works.append(round(seconds, 3))

    def set_ages_source(self, ages_s: Callable[[], Sequence[float]]) -> None:
        self.ages_s = ages_s


@pytest.fixture
def figures() -> RecordingMetrics:
    return RecordingMetrics()


@pytest.fixture
def watched(figures: RecordingMetrics) -> WorkQueue[str]:
    return WorkQueue(metrics=figures)


async def test_only_the_first_add_of_a_waiting_key_counts(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add("a")
    watched.add("a")
    watched.add("a", priority=1)
    watched.add("b")

    assert figures.adds == 2


async def test_key_added_while_processing_counts_but_is_not_in_the_depth(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add("a")
    await watched.get()
    watched.add("a")
    assert (figures.adds, figures.depths) == (2, {0: 0})

    watched.done("a")

    assert (figures.adds, figures.depths) == (2, {0: 1})


async def test_depth_moves_with_a_key_to_its_new_priority(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add("a")
    watched.add("b")
    watched.add("a", priority=7)

    assert figures.depths == {0: 1, 7: 1}


async def test_durations_are_from_the_first_add_to_get_and_from_get_to_done(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add("a")
    await asyncio.sleep(2)
    watched.add("a")
    await asyncio.sleep(1)
    await watched.get()
    await asyncio.sleep(5)
    watched.done("a")

    assert (figures.waits, figures.works) == ([3], [5])


async def test_delay_is_not_part_of_the_queue_duration(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add_after("a", 60)
    await asyncio.sleep(61)
    await watched.get()

    assert figures.waits == [1]


async def test_unfinished_work_covers_the_keys_being_processed(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    assert list(figures.ages_s()) == []
    for key in "ab":
        watched.add(key)
        await watched.get()
        await asyncio.sleep(3)
    assert list(figures.ages_s()) == pytest.approx([6, 3])

    watched.done("a")

    assert list(figures.ages_s()) == pytest.approx([3])


async def test_adds_with_a_delay_are_retries(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.add("a")
    watched.add_after("b", 0)
    watched.add_after("c", 1)
    watched.add_rate_limited("d")

    assert (figures.retries, figures.adds) == (2, 2)


async def test_nothing_is_counted_after_shut_down(
    watched: WorkQueue[str], figures: RecordingMetrics
) -> None:
    watched.shut_down()
    watched.add("a")
    watched.add_after("a", 1)

    assert (figures.adds, figures.retries, figures.depths) == (0, 0, {})
