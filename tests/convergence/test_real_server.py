"""Convergence on a real API server, where the order of events is not controlled.

Few seeds, because real time makes them slow, and only those in which much happens.
"""

import asyncio
import logging
from functools import partial
from itertools import count, islice
from typing import Final

import attrs
import pytest

from dlctl.options import Options
from tests.convergence.cases import Case, case_of
from tests.convergence.runs import Stage, check_same, outcome
from tests.support.real_harness import WAIT_TIMES, start_real_cluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]
logger = logging.getLogger(__name__)
# Longer than the timeout of silent watches, so delayed changes arrive within it.
_REST_S: Final = 6.0
_FAULTS: Final = 10
_KILLS: Final = 2
STAGE: Final = Stage(
    partial(start_real_cluster, wait_times=attrs.evolve(WAIT_TIMES, quiet_s=_REST_S)),
    Options(restart_backoff_s=0.5, restart_backoff_cap_s=1.0),
    faults_s=6.0,
    rest_s=_REST_S,
)


def is_eventful(case: Case) -> bool:
    return len(case.faults) >= _FAULTS and len(case.kills) >= _KILLS


SEEDS: Final = list(islice((s for s in count(1000) if is_eventful(case_of(s))), 8))


@pytest.mark.parametrize("seed", SEEDS)
async def test_job_ends_as_without_faults(seed: int) -> None:
    case = case_of(seed)
    logger.info("replay with case_of(%d): %s", seed, case)
    undisturbed, disturbed = await asyncio.gather(
        outcome(case.undisturbed(), STAGE), outcome(case, STAGE)
    )
    check_same(case, disturbed, undisturbed)
