"""Pauses between the tries of a reflector."""

import asyncio

import pytest

from dlctl.informers.backoff import ReflectorBackoff
from tests.informers.conftest import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_pauses_double_up_to_the_cap(clock: ManualClock) -> None:
    backoff = ReflectorBackoff(clock, random=lambda: 0.0)
    assert [backoff.next_s() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_pause_is_stretched_to_twice_its_length_at_most(clock: ManualClock) -> None:
    assert ReflectorBackoff(clock, random=lambda: 0.5).next_s() == pytest.approx(1.2)
    assert ReflectorBackoff(clock, random=lambda: 0.999).next_s() < 1.6


def test_two_good_minutes_reset_the_pauses(clock: ManualClock) -> None:
    backoff = ReflectorBackoff(clock, random=lambda: 0.0)
    for _ in range(5):
        backoff.next_s()
    clock.seconds += 120
    assert backoff.next_s() == 25.6
    clock.seconds += 121
    assert backoff.next_s() == 0.8


@pytest.mark.looptime
async def test_server_that_asks_for_a_longer_pause_gets_it(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await ReflectorBackoff(clock, random=lambda: 0.0).pause(17)
    assert loop.time() - started == 17


@pytest.mark.looptime
async def test_server_that_asks_for_a_day_is_asked_again_sooner(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await ReflectorBackoff(clock, random=lambda: 0.0).pause(86_400)
    assert loop.time() - started == 300
