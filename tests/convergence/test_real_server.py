"""What converges on the embedded API server does so on a real one, where nobody orders the turns.

Few seeds: real time makes them slow.
"""

import asyncio
import logging
from typing import Final

import pytest
import yaml

from dlctl.options import Options
from tests.convergence.cases import case_of
from tests.convergence.runs import Stage, outcome
from tests.support.realworld import real_world

pytestmark = [pytest.mark.real, pytest.mark.timeout(200)]
logger = logging.getLogger(__name__)
STAGE: Final = Stage(
    real_world,
    Options(restart_backoff_s=0.5, restart_backoff_cap_s=1.0),
    faults_s=6.0,
    # Longer than a watch may be silent: what a fault has held back comes within it.
    rest_s=5.0,
)


@pytest.mark.parametrize("seed", range(1000, 1008))
async def test_job_ends_as_without_faults(seed: int) -> None:
    case = case_of(seed)
    logger.info("replay with case_of(%d): %s", seed, case)
    undisturbed, disturbed = await asyncio.gather(
        outcome(case.undisturbed(), STAGE), outcome(case, STAGE)
    )
    assert yaml.safe_dump(disturbed) == yaml.safe_dump(undisturbed)
