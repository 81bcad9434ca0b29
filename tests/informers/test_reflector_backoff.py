"""Pauses between the attempts of a reflector."""

import asyncio

import pytest

from dlctl.informers.reflector_backoff import ReflectorBackoff
from tests.support.timing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_pauses_double_up_to_the_cap(clock: ManualClock) -> None:
    backoff = ReflectorBackoff(clock, random=lambda: 0.0)
    assert [backoff.next_s() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_jitter_at_most_doubles_a_pause(clock: ManualClock) -> None:
    assert ReflectorBackoff(clock, random=lambda: 0.5).next_s() == pytest.approx(1.2)
    assert ReflectorBackoff(clock, random=lambda: 0.999).next_s() < 1.6


def test_two_minutes_without_failures_reset_the_pauses(clock: ManualClock) -> None:
    backoff = ReflectorBackoff(clock, random=lambda: 0.0)
    for _ in range(5):
        backoff.next_s()
    clock.seconds += 120
    assert backoff.next_s() == 25.6
    clock.seconds += 121
    assert backoff.next_s() == 0.8


def test_pauses_of_an_outage_do_not_lengthen_those_after_it(clock: ManualClock) -> None:
    backoff = ReflectorBackoff(clock, random=lambda: 0.0)
    assert [backoff.next_s(is_down=True) for _ in range(5)] == [0.8, 1.6, 3.2, 5.0, 5.0]
    assert [backoff.next_s() for _ in range(3)] == [0.8, 1.6, 3.2]


@pytest.mark.looptime
async def test_longer_retry_after_is_honoured(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await ReflectorBackoff(clock, random=lambda: 0.0).pause(17)
    assert loop.time() - started == 17


@pytest.mark.looptime
async def test_retry_after_is_capped(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await ReflectorBackoff(clock, random=lambda: 0.0).pause(86_400)
    assert loop.time() - started == 300
