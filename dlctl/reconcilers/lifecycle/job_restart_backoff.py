"""When a job may restart as a whole after a failure, by its last attempts. Pure.

Attempts are persistent, so every controller computes the same times.
"""

import datetime
from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.status.verdict import Attempt
from dlctl.backoff import Backoff

_HOUR: Final = datetime.timedelta(hours=1)


@attrs.frozen
class RestartLimits:
    """How fast jobs may restart."""

    backoff: Backoff
    # Restarts for causes that are not the user's, whose number is not limited; 0 for no limit.
    infrastructure_per_hour: int = 0


def restart_at(attempts: Sequence[Attempt], limits: RestartLimits) -> datetime.datetime | None:
    """Return when a job may restart whose last attempt has failed; None if none has."""
    failed = _since_interruption(attempts)
    if not failed or (ended_at := failed[-1].end_time) is None:
        return None
    due = ended_at + datetime.timedelta(seconds=limits.backoff.delay_s(_streak(failed, limits)))
    return max(due, _cap_ends_at(failed, limits) or due)


def _since_interruption(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the failed attempts since the job was suspended, if it was."""
    failed: list[Attempt] = []
    for attempt in attempts:
        if attempt.verdict is not None:
            failed.append(attempt)
        elif attempt.end_time is not None:
            failed.clear()
    return failed


def _streak(failed: Sequence[Attempt], limits: RestartLimits) -> int:
    """Return how many of the last attempts ended soon; the last one counts in any case."""
    streak = 0
    for attempt in failed:
        if _ran_s(attempt) >= limits.backoff.reset_s:
            streak = 0
        streak += 1
    return streak


def _ran_s(attempt: Attempt) -> float:
    return (attempt.end_time - attempt.start_time).total_seconds() if attempt.end_time else 0.0


def _cap_ends_at(failed: Sequence[Attempt], limits: RestartLimits) -> datetime.datetime | None:
    """Return when the window has room for another restart; None if the cause is the user's."""
    maximum = limits.infrastructure_per_hour
    if not maximum or not _is_infrastructure(failed[-1]):
        return None
    ends = [one.end_time for one in failed if one.end_time and _is_infrastructure(one)]
    return ends[-1 - maximum] + _HOUR if len(ends) > maximum else None


def _is_infrastructure(attempt: Attempt) -> bool:
    return attempt.verdict is not None and attempt.verdict.cause.is_infrastructure
