import pytest

from dlctl.leaderelection.tenure import Tenure
from dlctl.leaderelection.timing import Timing
from tests.leaderelection.conftest import FakeClock, FakeWatchdog

START = 1000.0


@pytest.fixture
def watchdog() -> FakeWatchdog:
    return FakeWatchdog()


@pytest.fixture
def tenure(clock: FakeClock, watchdog: FakeWatchdog) -> Tenure:
    return Tenure(Timing(), clock, watchdog)


def test_nothing_may_be_written_before_the_lease_is_won(tenure: Tenure) -> None:
    assert not tenure.may_write()


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
def test_time_alone_ends_it(
    tenure: Tenure, clock: FakeClock, since_s: float, may_write: bool, healthy: bool
) -> None:
    tenure.renewed(START)
    clock.seconds = START + since_s
    assert (tenure.may_write(), tenure.healthy()) == (may_write, healthy)


def test_health_has_some_tolerance_if_asked(tenure: Tenure, clock: FakeClock) -> None:
    tenure.renewed(START)
    clock.seconds = START + 16
    assert tenure.healthy(tolerance_s=1)
    clock.seconds += 0.1
    assert not tenure.healthy(tolerance_s=1)


def test_those_who_do_not_lead_are_healthy(tenure: Tenure, clock: FakeClock) -> None:
    clock.seconds += 1e6
    assert tenure.healthy()


def test_watchdog_counts_from_when_the_renewal_began(
    tenure: Tenure, clock: FakeClock, watchdog: FakeWatchdog
) -> None:
    clock.seconds = START + 3
    tenure.renewed(START)
    assert watchdog.armed_s == 7
    assert tenure.left_s == 6


def test_loss_is_for_ever_and_the_end_near(
    tenure: Tenure, clock: FakeClock, watchdog: FakeWatchdog
) -> None:
    tenure.renewed(START)
    tenure.lost()
    assert watchdog.armed_s == 1
    tenure.renewed(clock.seconds)
    assert not tenure.may_write()


def test_loss_never_puts_off_the_deadline(
    tenure: Tenure, clock: FakeClock, watchdog: FakeWatchdog
) -> None:
    tenure.renewed(START)
    clock.seconds = START + 9.75
    tenure.lost()
    assert watchdog.armed_s == 0.25
    tenure.resign()
    assert watchdog.armed_s == 0.25


def test_resigning_leaves_time_for_giving_the_lease_back(
    tenure: Tenure, watchdog: FakeWatchdog
) -> None:
    tenure.renewed(START)
    tenure.resign()
    assert not tenure.may_write()
    assert watchdog.armed_s == 11
    tenure.settled()
    assert watchdog.armed_s is None


def test_one_who_never_led_is_not_watched(tenure: Tenure, watchdog: FakeWatchdog) -> None:
    tenure.resign()
    assert watchdog.armed_s is None
