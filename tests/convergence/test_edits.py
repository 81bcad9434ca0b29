"""Edited, suspended and recreated jobs end up as new ones with the same spec."""

import logging
import random

import pytest

from tests.convergence import edit_chaos, elastic_edit_chaos

pytestmark = [pytest.mark.looptime(noop_cycles=8), pytest.mark.timeout(60)]
logger = logging.getLogger(__name__)
FAST = range(8)
SOAK = range(8, 108)


@pytest.mark.parametrize("seed", FAST)
async def test_edited_job_equals_a_new_one(seed: int) -> None:
    logger.info("replay with edit_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await edit_chaos.run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_edited_job_equals_a_new_one_for_many_seeds(seed: int) -> None:
    await test_edited_job_equals_a_new_one(seed)


@pytest.mark.parametrize("seed", FAST)
async def test_edited_job_whose_children_are_held_equals_a_new_one(seed: int) -> None:
    logger.info("replay with edit_chaos.run_chaos(%d, holding=True)", seed)
    random.seed(seed)
    await edit_chaos.run_chaos(seed, holding=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_edited_job_whose_children_are_held_equals_a_new_one_for_many_seeds(
    seed: int,
) -> None:
    await test_edited_job_whose_children_are_held_equals_a_new_one(seed)


@pytest.mark.parametrize("seed", FAST)
async def test_edited_elastic_job_has_the_workers_of_its_spec(seed: int) -> None:
    logger.info("replay with elastic_edit_chaos.run_chaos(%d)", seed)
    random.seed(seed)
    await elastic_edit_chaos.run_chaos(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK)
async def test_edited_elastic_job_has_the_workers_of_its_spec_for_many_seeds(seed: int) -> None:
    await test_edited_elastic_job_has_the_workers_of_its_spec(seed)
