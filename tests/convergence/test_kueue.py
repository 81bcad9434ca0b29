"""However often Kueue moves a job, its pods are those of its last admission."""

import logging
import random

import pytest

from tests.convergence.kueue_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(8)
SOAK = range(8, 108)


@pytest.mark.parametrize("seed", FAST)
async def test_pods_are_those_of_the_last_admission(seed: int) -> None:
    logger.info("replay with kueue_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_pods_are_those_of_the_last_admission_for_many_seeds(seed: int) -> None:
    await test_pods_are_those_of_the_last_admission(seed)
