"""MPIJobs of v2beta1 run in the end and succeed with their launcher, whatever happened before."""

import logging
import random

import pytest

from tests.convergence.launcher_chaos import run_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(12)
SOAK = range(12, 112)
# Suspends the job while the pods of its last attempt are being deleted.
SUSPENDED_RESTART = 1440


@pytest.mark.parametrize("seed", FAST)
async def test_job_runs_in_the_end(seed: int) -> None:
    await _live_through(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_job_runs_in_the_end_for_many_seeds(seed: int) -> None:
    await _live_through(seed)


@pytest.mark.parametrize("seed", [*FAST, SUSPENDED_RESTART])
async def test_attempts_of_a_job_with_a_failure_policy_never_meet(seed: int) -> None:
    await _live_through(seed, with_failure_policy=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_attempts_never_meet_for_many_seeds(seed: int) -> None:
    await _live_through(seed, with_failure_policy=True)


async def _live_through(seed: int, *, with_failure_policy: bool = False) -> None:
    logger.info("replay with run_chaos(%d, with_failure_policy=%s)", seed, with_failure_policy)
    random.seed(seed)
    await run_chaos(seed, with_failure_policy=with_failure_policy)
