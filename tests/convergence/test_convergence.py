"""Jobs end as without faults, whatever the API server does and whenever the controller dies."""

import logging
import random

import pytest

from tests.convergence.cases import Case, case_of
from tests.convergence.runs import check_same, outcome

# A few loop iterations per time step suffice: all sockets belong to this process.
pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(20)
SOAK = range(20, 220)
# Deletes a pod while the controller waits for the watches to show its own writes.
UNOBSERVED_DELETION = 1454


@pytest.mark.parametrize("seed", [*FAST, UNOBSERVED_DELETION])
async def test_job_ends_as_without_faults(seed: int) -> None:
    await _check(case_of(seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_job_ends_as_without_faults_for_many_seeds(seed: int) -> None:
    await _check(case_of(seed))


async def _check(case: Case) -> None:
    logger.info("replay with case_of(%d): %s", case.seed, case)
    random.seed(case.seed)
    undisturbed = await outcome(case.undisturbed())
    random.seed(case.seed)
    check_same(case, await outcome(case), undisturbed)
