import pytest

from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.leaderelection.lease_validity import LeaseValidity
from tests.leaderelection.lease_server import FakeWatchdog
from tests.support.timing import ManualClock

START = 1000.0


@pytest.fixture
def watchdog() -> FakeWatchdog:
    return FakeWatchdog()


@pytest.fixture
def validity(clock: ManualClock, watchdog: FakeWatchdog) -> LeaseValidity:
    return LeaseValidity(LeaseTiming(), clock, watchdog)


def test_writes_are_forbidden_before_the_lease_is_acquired(validity: LeaseValidity) -> None:
    assert not validity.may_write()


@pytest.mark.parametrize(
    ("since_s", "may_write", "healthy"),
    [
        pytest.param(0.0, True, True, id="just renewed"),
        pytest.param(8.9, True, True, id="before the last write"),
        pytest.param(9.0, False, True, id="last write"),
        pytest.param(10.0, False, True, id="renew deadline"),
        pytest.param(15.0, False, True, id="end of the lease"),
        pytest.param(15.1, False, False, id="watchdog asleep"),
    ],
)
def test_validity_ends_by_time_alone(
    validity: LeaseValidity, clock: ManualClock, since_s: float, may_write: bool, healthy: bool
) -> None:
    validity.extend(START)
    clock.seconds = START + since_s
    assert (validity.may_write(), validity.healthy()) == (may_write, healthy)


def test_standby_is_healthy(validity: LeaseValidity, clock: ManualClock) -> None:
    clock.seconds += 1e6
    assert validity.healthy()


def test_watchdog_counts_from_the_start_of_the_renewal(
    validity: LeaseValidity, clock: ManualClock, watchdog: FakeWatchdog
) -> None:
    clock.seconds = START + 3
    validity.extend(START)
    assert watchdog.armed_s == 7
    assert validity.remaining_s == 6


def test_lost_lease_stays_lost_and_the_deadline_is_near(
    validity: LeaseValidity, clock: ManualClock, watchdog: FakeWatchdog
) -> None:
    validity.extend(START)
    validity.revoke()
    assert watchdog.armed_s == 1
    validity.extend(clock.seconds)
    assert not validity.may_write()


def test_loss_never_extends_the_deadline(
    validity: LeaseValidity, clock: ManualClock, watchdog: FakeWatchdog
) -> None:
    validity.extend(START)
    clock.seconds = START + 9.75
    validity.revoke()
    assert watchdog.armed_s == 0.25
    validity.resign()
    assert watchdog.armed_s == 0.25


def test_resigning_leaves_time_to_release_the_lease(
    validity: LeaseValidity, watchdog: FakeWatchdog
) -> None:
    validity.extend(START)
    validity.resign()
    assert not validity.may_write()
    assert watchdog.armed_s == 11
    validity.released()
    assert watchdog.armed_s is None


def test_standby_is_not_watched_by_the_watchdog(
    validity: LeaseValidity, watchdog: FakeWatchdog
) -> None:
    validity.resign()
    assert watchdog.armed_s is None
