"""The attempts of a job: one ends with the first failure, the next begins when the job runs again.

Pure, and idempotent: a run counts towards the attempt in which it started, so what was recorded is
recognized in whatever order and however late it is seen. A job that never fails records none.
"""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from dlctl.api.job import WORKER, Job
from dlctl.api.status.job_status import Failure
from dlctl.api.status.verdict import MAX_ATTEMPTS, Attempt, Cause, Confidence, Verdict
from dlctl.errors import truncated
from dlctl.reconcilers.failures.absent_replicas import absent_replica
from dlctl.reconcilers.failures.ended_runs import EndedRun, ended_runs
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.failures.first_cause import first_cause
from dlctl.reconcilers.failures.recorded_runs import (
    is_decided,
    is_recorded,
    new_runs,
    runs_of_attempt,
)
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.lifecycle.job_limits import BACKOFF_LIMIT_EXCEEDED, DEADLINE_EXCEEDED
from dlctl.reconcilers.lifecycle.starting_deadline import (
    STARTING_DEADLINE_EXCEEDED,
    starting_cause,
)
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status.replica_conditions import is_running

# A kubelet restarts a launcher at once, a moment before its Job notices that it may not.
_UNDONE_S: Final = 10.0
_MAX_MESSAGE_CHARS: Final = 512
# From the weakest to the strongest.
_CONFIDENCES: Final = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
_RUNS_OR_HAS_ENDED: Final = frozenset(
    {ReplicaState.RUNNING, ReplicaState.SUCCEEDED, ReplicaState.RETIRED}
)
_ABSENT: Final = frozenset({ReplicaState.MISSING, ReplicaState.PENDING})


def recorded_attempts(
    job: Job, observed: Observed, now: datetime.datetime, judge: RunJudge
) -> tuple[Attempt, ...]:
    """Return the attempts of a job that has not ended, from those in its last status."""
    attempts, runs = job.status.attempts, ended_runs(job, observed, now)
    new = new_runs(job, runs, attempts, judge)
    if runs and _is_over(attempts):
        later = set(map(id, new))
        late = [run for run in runs if id(run) not in later]
        attempts = _with_late_ends(job, attempts, late, observed, now)
    # Replicas may have failed more than once since the last reconcile.
    for _ in range(MAX_ATTEMPTS):
        if not any(run.interrupts for run in new):
            break
        attempts = _with_end(job, attempts, new, observed, judge)
        if is_decided(job, attempts[-1].verdict):
            # A second end would hide the first, which is the cause.
            break
        new = new_runs(job, new, attempts, judge)
    if attempts != job.status.attempts:
        # The end of an attempt is persisted before the next one begins.
        return attempts
    if _is_over(attempts) and _runs_again(job, observed):
        return _opened(job, attempts, now)
    return _with_absent(job, attempts, observed, now)


def final_attempts(
    attempts: Sequence[Attempt], job: Job, observed: Observed, failure: Failure
) -> tuple[Attempt, ...]:
    """Return the attempts of a job that a failure ends."""
    if _is_undone(attempts, failure):
        return (*attempts[:-2], attrs.evolve(attempts[-2], lost_s=None))
    if _is_over(attempts) and failure.reason != DEADLINE_EXCEEDED:
        # A limit of restarts is reached by a failure, and that has a cause of its own.
        return tuple(attempts)
    if _is_over(attempts):
        attempts = _opened(job, attempts, attempts[-1].end_time or failure.time)
    return closed(job, attempts, failure.time, _verdict_of_failure(job, observed, failure))


def succeeded_attempts(job: Job, observed: Observed, now: datetime.datetime) -> tuple[Attempt, ...]:
    """Return the attempts of a job that has succeeded, perhaps unseen since the last one ended."""
    attempts = job.status.attempts
    end = attempts[-1].end_time if attempts else None
    if end is not None:
        starts = [start for start in _starts(observed) if start >= end]
        attempts = _opened(job, attempts, min(*starts, now)) if starts else attempts
    return stopped_attempts(attempts, now)


def stopped_attempts(attempts: Sequence[Attempt], now: datetime.datetime) -> tuple[Attempt, ...]:
    """Return the attempts of a job that stops: no failure ends the last one."""
    if not attempts or _is_over(attempts):
        return tuple(attempts)
    return (*attempts[:-1], attrs.evolve(attempts[-1], end_time=now))


def closed(
    job: Job, attempts: Sequence[Attempt], end: datetime.datetime, verdict: Verdict
) -> tuple[Attempt, ...]:
    """Return the attempts with the running one ended, for this cause."""
    # The first attempt is not written before it ends.
    running = attempts[-1] if attempts else _first(job, end)
    ended = attrs.evolve(
        running, end_time=max(end, running.start_time), verdict=_persistable(verdict)
    )
    return (*attempts[:-1], ended)[-MAX_ATTEMPTS:]


def _with_end(
    job: Job,
    attempts: tuple[Attempt, ...],
    runs: Sequence[EndedRun],
    observed: Observed,
    judge: RunJudge,
) -> tuple[Attempt, ...]:
    """Return the attempts with the end that the first of some unrecorded runs has caused."""
    first = min((run for run in runs if run.interrupts), key=lambda run: run.time)
    end, ended = first.time, runs_of_attempt(job, runs, first, judge)
    if _is_over(attempts):
        # It has failed again before it ran again as a whole.
        started_at = min(run.started_at for run in ended)
        attempts = _opened(job, attempts, max(started_at, attempts[-1].end_time or started_at))
    verdict = _verdict(job, ended, observed, judge.now)
    return closed(job, attempts, end, verdict)


def _with_absent(
    job: Job, attempts: tuple[Attempt, ...], observed: Observed, now: datetime.datetime
) -> tuple[Attempt, ...]:
    """Return the attempts with the end that a replica has caused without a trace, if one has."""
    one = absent_replica(job, observed)
    if one is None or (_is_over(attempts) and not job.failure_policy_decides(one.replica.type)):
        return attempts
    name, pod = str(one.replica), job.child_name(one.replica)
    message = "its pod is gone, and its end was not observed"
    gone = Verdict(Cause.PLATFORM, Confidence.LOW, message, now, name, pod)
    attempts = _opened(job, attempts, now) if _is_over(attempts) else attempts
    return closed(job, attempts, now, gone)


def _first(job: Job, now: datetime.datetime) -> Attempt:
    started_at = job.status.start_time or now
    return Attempt(job.status.job_restarts, min(started_at, now), world_size=job.total_replicas)


def _opened(job: Job, attempts: Sequence[Attempt], now: datetime.datetime) -> tuple[Attempt, ...]:
    """Return the attempts with another one, which makes the time that the last one cost known."""
    last = attempts[-1]
    lost_s = int((now - (last.end_time or now)).total_seconds())
    following = Attempt(last.number + 1, now, world_size=job.total_replicas)
    return (*attempts[:-1], attrs.evolve(last, lost_s=max(lost_s, 0)), following)[-MAX_ATTEMPTS:]


def _starts(observed: Observed) -> Iterator[datetime.datetime]:
    """Yield when the last run of each replica began, or its pod if that is not known."""
    ends = ((one.pod, one.termination) for one in observed.replicas)
    newest = observed.launcher.newest_pod if observed.launcher else None
    for pod, end in (*ends, (newest, None)):
        start = end.started_at if end else None
        start = start or (pod.metadata.creation_timestamp if pod else None)
        if start is not None:
            # Statuses have whole seconds.
            yield start.replace(microsecond=0)


def _with_late_ends(
    job: Job,
    attempts: tuple[Attempt, ...],
    runs: Sequence[EndedRun],
    observed: Observed,
    now: datetime.datetime,
) -> tuple[Attempt, ...]:
    """Return attempts with a better verdict on the last, if the runs that ended since prove one."""
    *before, last = attempts
    late = [r for r in runs if is_recorded(r, attempts) and not is_recorded(r, before)]
    if last.verdict is None or not _may_prove_more(late, last.verdict):
        return attempts
    new = _persistable(_verdict(job, late, observed, now))
    is_visible = any(run.failed_replica.pod.metadata.name == last.verdict.pod for run in late)
    better = _better(last.verdict, new, is_compared=is_visible)
    return (*before, attrs.evolve(last, verdict=better))


def _verdict(
    job: Job, runs: Sequence[EndedRun], observed: Observed, now: datetime.datetime
) -> Verdict:
    """Return the first cause of the end of some runs."""
    verdict = first_cause(job, [run.failed_replica for run in runs], now)
    if verdict.node or not verdict.replica:
        return verdict
    # A launcher may blame a replica whose own pod shows no end.
    pods = (pod for pod in observed.pods_with_active_launchers if pod.metadata.name == verdict.pod)
    return attrs.evolve(verdict, node=next((pod.node_name for pod in pods), ""))


def _may_prove_more(late: Sequence[EndedRun], verdict: Verdict) -> bool:
    """Return whether a verdict is worth another look, which costs time in large jobs."""
    is_proved = verdict.confidence is Confidence.HIGH
    has_more = any(run.failed_replica.faulty_node for run in late)
    return len(late) > verdict.collateral_count + 1 or (has_more and not is_proved)


def _better(old: Verdict, new: Verdict, *, is_compared: bool) -> Verdict:
    """Return the better one of two verdicts on an attempt.

    Evidence goes with its pod: ``is_compared`` if the new one has still considered that of the old.
    """
    is_stronger = _CONFIDENCES.index(new.confidence) > _CONFIDENCES.index(old.confidence)
    if is_stronger or (is_compared and new.replica != old.replica):
        return new
    if new.replica == old.replica and new.collateral_count > old.collateral_count:
        return attrs.evolve(old, collateral=new.collateral, collateral_count=new.collateral_count)
    return old


def _is_undone(attempts: Sequence[Attempt], failure: Failure) -> bool:
    """Return whether the last attempt has just begun although no restart was left."""
    if len(attempts) < 2 or failure.replica or failure.reason != BACKOFF_LIMIT_EXCEEDED:
        return False
    before, last = attempts[-2:]
    ran_s = (failure.time - last.start_time).total_seconds()
    return last.end_time is None and before.verdict is not None and ran_s <= _UNDONE_S


def _is_over(attempts: Sequence[Attempt]) -> bool:
    """Return whether the last attempt has ended; the first one is not recorded before."""
    return bool(attempts) and attempts[-1].end_time is not None


def _runs_again(job: Job, observed: Observed) -> bool:
    """Return whether all replicas run that have not ended; elastic jobs run with fewer workers."""
    whole = (
        one.state in _RUNS_OR_HAS_ENDED or _may_be_absent(job, one) for one in observed.replicas
    )
    return is_running(job, observed) and all(whole)


def _may_be_absent(job: Job, one: ObservedReplica) -> bool:
    """Return whether a job goes on without a replica that does not run."""
    if one.state is ReplicaState.FAILED_PERMANENT:
        return not job.success_policy.requires(one.replica)
    is_elastic_worker = job.elasticity is not None and one.replica.type == WORKER
    return is_elastic_worker and one.state in _ABSENT and not one.is_restarting


def _verdict_of_failure(job: Job, observed: Observed, failure: Failure) -> Verdict:
    """Return the verdict on a failure that no attempt has recorded.

    It is of the job as a whole, of a replica that left no trace, or of one that seemed to follow
    the end of the last attempt, after which the job ran again.
    """
    runs = ended_runs(job, observed, failure.time)
    if its_own := [run for run in runs if str(run.failed_replica.replica) == failure.replica]:
        return _verdict(job, its_own, observed, failure.time)
    waiting = [
        FailedReplica(one.replica, one.pod, None)
        for one in observed.replicas
        if one.pod is not None and one.state is ReplicaState.PENDING
    ]
    if not failure.replica:
        verdict = first_cause(job, waiting, failure.time)
        if verdict.cause is not Cause.UNKNOWN:
            return verdict
    cause, confidence = Cause.UNKNOWN, Confidence.LOW
    if failure.reason == DEADLINE_EXCEEDED:
        cause, confidence = Cause.DEADLINE, Confidence.HIGH
    elif failure.reason == STARTING_DEADLINE_EXCEEDED:
        cause, confidence = starting_cause(job.status), Confidence.HIGH
    return Verdict(
        cause,
        confidence,
        failure.message,
        failure.time,
        replica=failure.replica,
        pod=failure.pod,
        exit_code=failure.exit_code,
    )


def _persistable(verdict: Verdict) -> Verdict:
    """Return a verdict as the status holds it: whole seconds, and a message of bounded length."""
    message = truncated(verdict.message, _MAX_MESSAGE_CHARS)
    return attrs.evolve(verdict, message=message, time=verdict.time.replace(microsecond=0))
