"""While a CRD is outdated, one job of its kind is tried per interval."""

import pytest

from dlctl.metrics import Metrics
from dlctl.reconcilers.job.crd_check import BACKOFF, CRDCheck
from tests.builders import kind_of
from tests.support.timing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


@pytest.fixture
def crd(clock: ManualClock) -> CRDCheck:
    return CRDCheck(kind_of().resource, Metrics(), clock)


def test_jobs_wait_for_no_crd_that_is_current(crd: CRDCheck) -> None:
    crd.start_attempt()
    assert crd.left_s() == 0


def test_asking_how_long_to_wait_changes_nothing(crd: CRDCheck, clock: ManualClock) -> None:
    crd.record_drop()
    clock.seconds += BACKOFF.delay_s(1)
    assert [crd.left_s(), crd.left_s()] == [0, 0]


def test_other_jobs_wait_while_one_is_tried(crd: CRDCheck, clock: ManualClock) -> None:
    crd.record_drop()
    assert crd.left_s() == BACKOFF.delay_s(1)
    clock.seconds += BACKOFF.delay_s(1)
    crd.start_attempt()
    assert crd.left_s() == BACKOFF.delay_s(1)
