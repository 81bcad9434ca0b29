"""Scale requests leave exactly the right workers, whatever faults occur."""

import logging
import random

import pytest

from tests.convergence.elastic_cases import elastic_case
from tests.convergence.elastic_chaos import run_chaos
from tests.convergence.elastic_runs import run

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(15)
SOAK = range(15, 65)


@pytest.mark.parametrize("seed", FAST)
async def test_requests_leave_the_right_workers(seed: int) -> None:
    await _check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_requests_leave_the_right_workers_for_many_seeds(seed: int) -> None:
    await _check(seed)


@pytest.mark.parametrize("seed", FAST)
async def test_number_of_workers_matches_the_requests_whichever_die(seed: int) -> None:
    await _live_through(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_number_of_workers_matches_the_requests_for_many_seeds(seed: int) -> None:
    await _live_through(seed)


async def _live_through(seed: int) -> None:
    logger.info("replay with live_through(%d)", seed)
    random.seed(seed)
    await run_chaos(seed)


async def _check(seed: int) -> None:
    case = elastic_case(seed)
    logger.info("replay with elastic_case(%d): %s", seed, case)
    random.seed(seed)
    await run(case)
