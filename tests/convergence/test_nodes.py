"""Jobs outlive their nodes, and only replace the pods that have ended."""

import logging
import random

import pytest

from tests.convergence import elastic_node_chaos
from tests.convergence.node_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(5)
SOAK = range(5, 105)


@pytest.mark.parametrize("seed", FAST)
async def test_job_outlives_its_nodes(seed: int) -> None:
    logger.info("replay with node_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_job_outlives_its_nodes_for_many_seeds(seed: int) -> None:
    await test_job_outlives_its_nodes(seed)


@pytest.mark.parametrize("seed", FAST)
async def test_elastic_job_outlives_its_nodes(seed: int) -> None:
    logger.info("replay with elastic_node_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await elastic_node_chaos.run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_elastic_job_outlives_its_nodes_for_many_seeds(seed: int) -> None:
    await test_elastic_job_outlives_its_nodes(seed)
