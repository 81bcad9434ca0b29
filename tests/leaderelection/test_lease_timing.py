import math

import pytest

from dlctl.errors import ConfigError
from dlctl.leaderelection.lease_timing import LeaseTiming


def test_defaults_are_valid_and_leave_slack() -> None:
    timing = LeaseTiming()
    assert timing.retry_s < timing.write_window_s < timing.renew_s < timing.lease_s
    assert timing.renew_s / timing.request_timeout_s == 2


def test_writes_end_a_tenth_of_a_short_deadline_before_the_process_does() -> None:
    timing = LeaseTiming(lease_s=4.0, renew_s=3.0, retry_s=1.0)
    assert (timing.margin_s, timing.write_window_s) == pytest.approx((0.3, 2.7))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        pytest.param({"lease_s": 10.0}, "lease-duration", id="lease as long as the deadline"),
        pytest.param({"lease_s": 5.0}, "lease-duration", id="lease shorter"),
        pytest.param({"lease_s": math.inf}, "lease-duration", id="lease without end"),
        pytest.param({"renew_s": 2.4}, "renew-deadline", id="no room for a stretched retry"),
        pytest.param({"renew_s": math.nan}, "lease-duration", id="not a number"),
        pytest.param({"retry_s": 0.0}, "retry-period", id="no pause"),
        pytest.param({"retry_s": -1.0}, "retry-period", id="pause below zero"),
        pytest.param({"stall_s": 2.0}, "stall-timeout", id="stall that no retry could tell"),
    ],
)
def test_contradictory_durations_are_rejected_and_named(
    settings: dict[str, float], named: str
) -> None:
    with pytest.raises(ConfigError, match=f"--leader-elect-{named}"):
        LeaseTiming(**settings)


def test_lease_duration_is_rounded_up_to_whole_seconds() -> None:
    assert LeaseTiming(lease_s=1.2, renew_s=0.6, retry_s=0.1).lease_seconds == 2
