"""When a job restarts: a growing back-off, and a cap on restarts that are not the user's."""

import datetime

import pytest

from dlctl.api.status.verdict import MAX_ATTEMPTS, Attempt, Cause, Confidence, Verdict
from dlctl.backoff import Backoff
from dlctl.options import MAX_RESTARTS_PER_HOUR
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits, restart_at
from tests.builders import NOW

LIMITS = RestartLimits(Backoff(base_s=10, cap_s=300, reset_s=600), 3)
UNLIMITED = RestartLimits(LIMITS.backoff)


def after(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def attempts(*runs: tuple[int, int, Cause | None]) -> list[Attempt]:
    """Return attempts from their starts and ends in seconds, and causes."""
    return [
        Attempt(
            number,
            after(start),
            after(end),
            Verdict(cause, Confidence.LOW, "", after(end)) if cause else None,
        )
        for number, (start, end, cause) in enumerate(runs)
    ]


def soon(count: int, cause: Cause, every_s: int = 60) -> list[Attempt]:
    return attempts(*((i * every_s, i * every_s + 5, cause) for i in range(count)))


@pytest.mark.parametrize(("count", "delay_s"), [(1, 10), (2, 20), (3, 40), (6, 300), (20, 300)])
def test_backoff_grows_with_attempts_that_end_soon(count: int, delay_s: int) -> None:
    failed = soon(count, Cause.USER_CODE)
    assert restart_at(failed, LIMITS) == failed[-1].end_time + datetime.timedelta(seconds=delay_s)  # type: ignore[operator]


def test_long_attempt_resets_the_backoff() -> None:
    runs = [(0, 5, Cause.USER_CODE), (60, 65, Cause.USER_CODE), (100, 700, Cause.USER_CODE)]
    assert restart_at(attempts(*runs), LIMITS) == after(710)


def test_suspension_resets_the_backoff() -> None:
    runs = [(0, 5, Cause.USER_CODE), (60, 65, None), (100, 105, Cause.USER_CODE)]
    assert restart_at(attempts(*runs), LIMITS) == after(115)


def test_job_that_has_not_failed_need_not_wait() -> None:
    assert restart_at([], LIMITS) is None
    assert restart_at([Attempt(0, NOW)], LIMITS) is None


def test_restarts_that_are_not_the_users_are_capped() -> None:
    failed = soon(4, Cause.NODE, every_s=700)
    assert restart_at(failed, UNLIMITED) == after(2105 + 80)
    assert restart_at(failed[:3], LIMITS) == after(1405 + 40)
    # The first of the three before it leaves the window.
    assert restart_at(failed, LIMITS) == after(3605)


def test_cap_concerns_no_restart_that_is_the_users() -> None:
    failed = [*soon(4, Cause.NODE), *attempts((400, 405, Cause.USER_CODE))]
    due = restart_at(failed, LIMITS)
    assert due is not None
    assert due < after(1000)


def test_status_holds_enough_attempts_for_the_largest_cap() -> None:
    limits = RestartLimits(LIMITS.backoff, MAX_RESTARTS_PER_HOUR)
    assert restart_at(soon(MAX_ATTEMPTS, Cause.NODE), limits) == after(3605)
