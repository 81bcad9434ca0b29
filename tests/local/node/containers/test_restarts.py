"""When a container is restarted."""

import pytest

from dlctl.local.node.containers.restarts import CrashLoopBackoff, should_restart
from tests.local.node.builders import make_pod


def test_first_restart_is_immediate_and_later_ones_back_off_up_to_a_cap() -> None:
    backoff = CrashLoopBackoff()
    waits = [backoff.delay_s(1.0) for _ in range(8)]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_long_run_starts_the_backoff_over() -> None:
    backoff = CrashLoopBackoff()
    for _ in range(4):
        backoff.delay_s(1.0)
    assert [backoff.delay_s(600.0), backoff.delay_s(1.0)] == [0, 10]


@pytest.mark.parametrize(
    ("immediate", "waits"),
    [
        pytest.param(0, [10, 10, 20, 10], id="none"),
        pytest.param(3, [0, 10, 20, 10], id="three, of which the back-off makes one"),
    ],
)
def test_restarts_beyond_the_immediate_ones_wait_after_a_long_run_too(
    immediate: int, waits: list[float]
) -> None:
    backoff = CrashLoopBackoff(immediate_restarts=immediate)
    assert [backoff.delay_s(ran_s) for ran_s in (1, 1, 1, 600)] == waits


@pytest.mark.parametrize(
    ("policy", "exit_code", "init", "expected"),
    [
        ("Always", 0, False, True),
        ("Always", 0, True, False),
        ("Always", 1, True, True),
        ("OnFailure", 0, False, False),
        ("OnFailure", 1, False, True),
        ("Never", 1, False, False),
        ("Never", 1, True, False),
    ],
)
def test_restart_policy_decides_on_a_restart(
    policy: str, exit_code: int, init: bool, expected: bool
) -> None:
    assert should_restart(make_pod(restartPolicy=policy), exit_code, init=init) is expected
