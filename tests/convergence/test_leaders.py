"""Jobs end as under one controller, however often and in whatever way their leader changes."""

import logging
import random

import pytest

from tests.convergence.leader_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(6)
SOAK = range(6, 106)


@pytest.mark.parametrize("seed", FAST)
async def test_job_ends_as_under_one_controller(seed: int) -> None:
    logger.info("replay with leader_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_job_ends_as_under_one_controller_for_many_seeds(seed: int) -> None:
    await test_job_ends_as_under_one_controller(seed)
