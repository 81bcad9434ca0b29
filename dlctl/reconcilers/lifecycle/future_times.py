"""Times of a status that lie in the future, as after a clock was set back. Pure."""

import datetime
from typing import Final

import attrs

from dlctl.api.status.job_status import JobStatus
from dlctl.api.status.membership import Membership, ScaleOperation
from dlctl.api.status.verdict import Attempt

# The largest difference expected between the clocks of controllers.
_TOLERANCE: Final = datetime.timedelta(minutes=1)


def without_future_times(status: JobStatus, now: datetime.datetime) -> JobStatus:
    """Return the status with recorded times in the future replaced by now; as a rule, the same one.

    One in the future would hold up the job until then: its back-off or the time limit of a change
    would begin there, and all failures until then would count as recorded.
    """
    latest = now + _TOLERANCE
    attempts = tuple(_attempt_without_future(one, now, latest) for one in status.attempts)
    late = [name for name, one in status.restarts.items() if one.finished_at > latest]
    dropped_at = status.avoidance_dropped_at
    is_late = dropped_at is not None and dropped_at > latest
    membership = _membership_without_future(status.membership, now, latest)
    changed = (attempts, membership) != (status.attempts, status.membership)
    if not changed and not late and not is_late:
        return status
    replaced = {name: attrs.evolve(status.restarts[name], finished_at=now) for name in late}
    return attrs.evolve(
        status,
        attempts=attempts,
        membership=membership,
        restarts={**status.restarts, **replaced},
        avoidance_dropped_at=now if is_late else dropped_at,
    )


def _attempt_without_future(
    attempt: Attempt, now: datetime.datetime, latest: datetime.datetime
) -> Attempt:
    end = attempt.end_time
    if attempt.start_time > latest:
        attempt = attrs.evolve(attempt, start_time=now)
    return attrs.evolve(attempt, end_time=now) if end is not None and end > latest else attempt


def _membership_without_future(
    membership: Membership | None, now: datetime.datetime, latest: datetime.datetime
) -> Membership | None:
    if membership is None:
        return None
    return attrs.evolve(
        membership,
        scaling=_operation_without_future(membership.scaling, now, latest),
        evacuating=_operation_without_future(membership.evacuating, now, latest),
    )


def _operation_without_future(
    operation: ScaleOperation | None, now: datetime.datetime, latest: datetime.datetime
) -> ScaleOperation | None:
    is_late = operation is not None and operation.since > latest
    return attrs.evolve(operation, since=now) if operation and is_late else operation
