"""Whatever fails, a gang never has two attempts at once, and a job succeeds in the end."""

import logging
import random

import pytest

from tests.convergence.gang_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(12)
SOAK = range(12, 150)


@pytest.mark.parametrize("seed", FAST)
async def test_attempts_of_a_gang_never_overlap(seed: int) -> None:
    await _live_through(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_attempts_of_a_gang_never_overlap_for_many_seeds(seed: int) -> None:
    await _live_through(seed)


async def _live_through(seed: int) -> None:
    logger.info("replay with run_chaos(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)
