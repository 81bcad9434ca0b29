"""The next status of a job that starts, runs, is suspended or ends. Pure.

If nothing has changed it equals the last one, and nothing is written.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, replica_type
from dlctl.api.policies.failure_policy import FAIL_JOB_ACTION, REACHED_MAX_RESTARTS
from dlctl.api.status import conditions
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import (
    Failure,
    JobPhase,
    JobState,
    JobStatus,
    ReplicaStatus,
    RestartRecord,
)
from dlctl.api.status.verdict import Attempt
from dlctl.errors import truncated
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.status import replica_conditions, replica_counts
from dlctl.reconcilers.status.completion import Completion


def with_start(job: Job, observed: Observed, now: datetime.datetime) -> JobStatus:
    """Return the status of a job; one that has pods and none yet has started with the first pod."""
    times = [pod.metadata.creation_timestamp for pod in observed.own_pods]
    if job.status.phase is not JobPhase.NEW or not times:
        return job.status
    started = min((*filter(None, times), now))
    return attrs.evolve(_created_status(job.status, job, now), start_time=started)


def running_status(
    job: Job,
    observed: Observed,
    restarts: Mapping[str, RestartRecord],
    now: datetime.datetime,
    *,
    is_held: bool = False,
) -> tuple[JobStatus, tuple[EventNote, ...]]:
    """Return the status of a job that has not ended, and the events about its changes.

    One whose gang ``is_held`` back by its scheduler has not started yet.
    """
    status = job.status
    notes: tuple[EventNote, ...] = ()
    if status.phase is JobPhase.NEW:
        status = _created_status(status, job, now)
    elif status.phase is JobPhase.SUSPENDED:
        status, note = _resumed_status(status, job, now)
        notes = (note,)
    if status.phase is JobPhase.CREATING and replica_conditions.is_running(job, observed):
        status = attrs.evolve(status, phase=JobPhase.RUNNING)
    restarting = replica_conditions.restarting_replicas(job, observed)
    new_conditions = replica_conditions.with_running(
        status.conditions, job, observed, restarting, now
    )
    notes = (*notes, *_phase_notes(job, new_conditions))
    names = [str(one.replica) for one in restarting]
    if any(restarts.get(name) != status.restarts.get(name) for name in names):
        interruption = replica_conditions.interruption(job, restarting)
        notes = (*notes, EventNote("Warning", *interruption))
    return (
        attrs.evolve(
            status,
            start_time=status.start_time or (None if _is_queued(job, is_held) else now),
            conditions=new_conditions,
            replica_statuses=_replica_statuses(job, observed),
            restarts=restarts,
            observed_generation=job.generation,
        ),
        notes,
    )


def has_run(job: Job, status: JobStatus, observed: Observed) -> bool:
    """Return whether any pod of a job has ever run, as far as its status and pods show.

    Workers that wait for their launcher do not count: it may be the one that cannot be created.
    """
    if not status.phase.is_before_run or status.restarts or status.job_restarts:
        return True
    if any(c.type in (conditions.RUNNING, conditions.RESTARTING) for c in status.conditions):
        return True
    launchers = {spec.type for spec in job.replica_specs if spec.create_last}

    def counts(type_: str) -> bool:
        return not launchers or type_ in launchers

    ran = (JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED)
    if any(
        r.completed_indexes or any(map(r.count_by_state.get, ran))
        for r in status.replica_statuses
        if counts(r.type)
    ):
        return True
    idle = (ReplicaState.MISSING, ReplicaState.PENDING)
    return any(one.state not in idle for one in observed.replicas if counts(one.replica.type))


def terminal_status(
    job: Job, status: JobStatus, completion: Completion, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    """Return the status of a job that has just ended; its clean-up may still be pending."""
    failure = completion.failure
    if failure is None:
        type_, message, event_type = conditions.SUCCEEDED, job.messages.succeeded(), "Normal"
    else:
        type_, event_type = conditions.FAILED, job.messages.failed_event_type(failure)
        message = job.messages.failed(failure, _failed_count(status, failure))
        message = _with_first_cause(message, status.attempts)
    ended_at = completion.time or now
    new_conditions = _with_unseen_run(job, status.conditions, failure, ended_at)
    ended = attrs.evolve(
        status,
        replica_statuses=tuple(
            replica_counts.final_replica_status(job, replica, failure)
            for replica in status.replica_statuses
        ),
        phase=JobPhase.CLEAN_UP,
        state=JobState.FAILED if failure else JobState.SUCCEEDED,
        reason=message if failure else "",
        conditions=replica_conditions.with_true(
            new_conditions, job, type_, message, now, reason=_terminal_reason(job, failure)
        ),
        completion_time=ended_at,
        failure=failure,
    )
    return ended, EventNote(event_type, _terminal_event_reason(job, failure), message)


def _with_unseen_run(
    job: Job,
    old: Sequence[Condition],
    failure: Failure | None,
    ended_at: datetime.datetime,
) -> tuple[Condition, ...]:
    """Return the conditions of an ended job, with Running as false if the kind reports that."""
    kept = conditions.without_condition(old, conditions.WAITING)
    message = _message_of_unseen_run(job, failure)
    if not message or conditions.find(kept, conditions.RUNNING) is not None:
        return kept
    reason = job.messages.reason(conditions.RUNNING)
    unseen = Condition.at(ended_at, conditions.RUNNING, reason, message, status=False)
    return conditions.with_condition(kept, unseen)


def suspended_status(
    job: Job, observed: Observed, now: datetime.datetime
) -> tuple[JobStatus, tuple[EventNote, ...]]:
    """Return the status of a suspended job: no pods, and no record of earlier runs.

    Only the Job of a launcher goes on counting its failed attempts.
    """
    status = job.status
    if status.phase is JobPhase.SUSPENDED:
        counts = _suspended_replica_statuses(status, observed)
        return attrs.evolve(status, replica_statuses=counts, observed_generation=job.generation), ()
    sets_others = job.messages.suspension_sets_others()
    if status.phase is JobPhase.NEW and sets_others:
        status = _created_status(status, job, now)
        if job.messages.emits_idle:
            status = attrs.evolve(status, replica_statuses=_replica_statuses(job, Observed(())))
    reason, message = job.messages.suspended_reason(), job.messages.suspended()
    new_conditions = status.conditions
    changes = [(conditions.SUSPENDED, message, True)]
    is_running = conditions.is_true(new_conditions, conditions.RUNNING)
    if (is_running and sets_others) or job.messages.emits_idle:
        changes.insert(0, (conditions.RUNNING, job.messages.not_running(), False))
    for type_, text, value in changes:
        new = Condition.at(now, type_, reason, text, status=value)
        new_conditions = conditions.with_condition(new_conditions, new)
    return (
        attrs.evolve(
            status,
            phase=JobPhase.SUSPENDED,
            state=JobState.UNKNOWN,
            replica_statuses=_suspended_replica_statuses(status, observed),
            conditions=conditions.without_condition(new_conditions, conditions.RESTARTING),
            restarts={},
            counted_restarts=0,
            observed_generation=job.generation,
        ),
        (*_phase_notes(job, new_conditions), EventNote("Normal", reason, message)),
    )


def _suspended_replica_statuses(status: JobStatus, observed: Observed) -> tuple[ReplicaStatus, ...]:
    replicas = status.replica_statuses
    return tuple(replica_counts.suspended_replica_status(each, observed) for each in replicas)


def _is_queued(job: Job, is_held: bool) -> bool:
    """Return whether a job waits to be admitted, and none of its deadlines counts meanwhile.

    The deadline for the start counts from the creation.
    """
    return is_held and job.run_policy.starting_deadline_s is None


def _created_status(status: JobStatus, job: Job, now: datetime.datetime) -> JobStatus:
    """Return the status of a new job, which may be yet to start."""
    created = Condition.at(
        now, conditions.CREATED, f"{job.resource.kind}Created", job.messages.created()
    )
    return attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=conditions.with_condition(status.conditions, created),
    )


def _resumed_status(
    status: JobStatus, job: Job, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    reason, message = f"{job.resource.kind}Resumed", job.messages.resumed()
    if conditions.find(status.conditions, conditions.CREATED) is None:
        status = _created_status(status, job, now)
    new_conditions = status.conditions
    over = [conditions.SUSPENDED]
    if conditions.is_true(new_conditions, conditions.RUNNING):
        over.insert(0, conditions.RUNNING)
    for type_ in over:
        new = Condition.at(now, type_, reason, message, status=False)
        new_conditions = conditions.with_condition(new_conditions, new)
    resumed = attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=new_conditions,
        start_time=now,
    )
    return resumed, EventNote("Normal", reason, message)


def _with_first_cause(message: str, attempts: Sequence[Attempt]) -> str:
    """Return the message of a job's failure, followed by the verdict on its last attempt."""
    verdict = attempts[-1].verdict if attempts else None
    # Without a replica to blame, the message often is the verdict's already.
    if verdict is not None and (verdict.replica or verdict.message not in message):
        message = f"{message.rstrip('.')}. First cause: {verdict.describe(message)}"
    return truncated(message)


def _message_of_unseen_run(job: Job, failure: Failure | None) -> str:
    """Return the message of the Running condition of a job that has ended without one.

    It is empty for jobs that need none.
    """
    if job.messages.emits_idle:
        return job.messages.never_ran()
    return job.messages.running() if job.messages.emits_unseen_run(failure) else ""


def _terminal_reason(job: Job, failure: Failure | None) -> str:
    """Return the reason of a job's end."""
    if failure is None:
        return job.messages.reason(conditions.SUCCEEDED)
    if failure.reason in (REACHED_MAX_RESTARTS, FAIL_JOB_ACTION):
        return failure.reason
    if not failure.replica:
        return job.messages.job_failed_reason(failure)
    return job.messages.failed_reason(failure)


def _terminal_event_reason(job: Job, failure: Failure | None) -> str:
    if failure is None:
        return f"{job.resource.kind}{conditions.SUCCEEDED}"
    if not failure.replica:
        return job.messages.job_failed_reason(failure)
    return job.messages.failed_event_reason(failure)


def _phase_notes(job: Job, new_conditions: Sequence[Condition]) -> Iterator[EventNote]:
    """Yield the events about conditions that have become true."""
    for condition in new_conditions:
        message = job.messages.phase_event_message(condition.type) if condition.status else ""
        if message and not conditions.is_true(job.status.conditions, condition.type):
            yield EventNote("Normal", condition.reason, message)


def _replica_statuses(job: Job, observed: Observed) -> tuple[ReplicaStatus, ...]:
    found = tuple(replica_counts.replica_status(job, spec, observed) for spec in job.replica_specs)
    if not job.is_partial:
        return found
    # Types that cannot be decoded now keep their status for later.
    known = {replica.type for replica in found}
    return (*found, *(r for r in job.status.replica_statuses if r.type not in known))


def _failed_count(status: JobStatus, failure: Failure) -> int:
    """Return how many replicas of the first failed replica's type failed."""
    type_ = replica_type(failure.replica)
    counts = next((r.count_by_state for r in status.replica_statuses if r.type == type_), {})
    return max(counts.get(JobState.FAILED, 0), 1)
