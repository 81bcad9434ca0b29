import asyncio

import pytest

from dlctl.kube.flowcontrol.rate_limiter import RateLimiter

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


def bucket(qps: float, burst: int) -> RateLimiter:
    found = RateLimiter.from_settings(qps, burst)
    assert found is not None
    return found


async def passed_at(limit: RateLimiter, count: int) -> list[float]:
    """Return when each of several simultaneous requests may be sent."""
    started = now()

    async def one() -> float:
        await limit.wait()
        return round(now() - started, 6)

    return await asyncio.gather(*(one() for _ in range(count)))


async def test_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    assert await passed_at(bucket(10, 3), 6) == [0, 0, 0, 0.1, 0.2, 0.3]


async def test_pause_fills_the_bucket_up_to_the_burst() -> None:
    limit = bucket(10, 3)
    await passed_at(limit, 6)
    await asyncio.sleep(60)
    assert await passed_at(limit, 4) == [0, 0, 0, 0.1]


async def test_cancelled_turn_goes_to_the_next() -> None:
    limit = bucket(10, 1)
    await limit.wait()
    waiting = asyncio.create_task(limit.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await passed_at(limit, 1) == [0.1]


@pytest.mark.parametrize("qps", [0.0, -1.0])
def test_rate_zero_disables_the_limit(qps: float) -> None:
    assert RateLimiter.from_settings(qps, 30) is None


async def test_default_burst_is_one_second_of_the_rate() -> None:
    assert await passed_at(bucket(2.5, 0), 4) == [0, 0, 0, 0.4]
    assert await passed_at(bucket(0.5, 0), 2) == [0, 2]
