import time

from dlctl.clock import BoottimeClock


def test_boottime_clock_counts_at_least_the_time_awake() -> None:
    assert BoottimeClock().monotonic() >= time.monotonic() - 1
