"""Jobs end once, expire in time, and leave what their policies keep."""

import logging
import random

import pytest

from tests.convergence.ending_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(5)
SOAK = range(5, 105)


@pytest.mark.parametrize("seed", FAST)
async def test_end_is_final_and_leaves_what_is_kept(seed: int) -> None:
    logger.info("replay with ending_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_end_is_final_and_leaves_what_is_kept_for_many_seeds(seed: int) -> None:
    await test_end_is_final_and_leaves_what_is_kept(seed)
