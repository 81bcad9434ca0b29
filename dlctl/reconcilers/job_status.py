"""The next status of a job, from its last one and the observed children. Pure.

If nothing has changed it equals the last one, and nothing is written.
"""

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.api import conditions
from dlctl.api.conditions import Condition
from dlctl.api.job import Job
from dlctl.api.pods import PodPhase
from dlctl.api.status import Failure, JobPhase, JobState, JobStatus, ReplicaStatus, RestartRecord
from dlctl.reconcilers import replica_counts
from dlctl.reconcilers.completion import Completion
from dlctl.reconcilers.observe import Observed, ObservedReplica, ReplicaState

_MAX_LISTED: Final = 3
# States in which a replica that ran before does not run now.
_NOT_RUNNING: Final = frozenset(
    {ReplicaState.MISSING, ReplicaState.TERMINATING, ReplicaState.PENDING}
)


@attrs.frozen
class EventNote:
    """An event on the job, to be recorded once its cause is persisted."""

    type: str
    reason: str
    message: str


def running_status(
    job: Job, observed: Observed, restarts: Mapping[str, RestartRecord], now: datetime.datetime
) -> tuple[JobStatus, tuple[EventNote, ...]]:
    """Return the status of a job that has not ended, and the events about its changes."""
    status = job.status
    notes: tuple[EventNote, ...] = ()
    if status.phase is JobPhase.NEW:
        status = _created_status(status, job, now)
    elif status.phase is JobPhase.SUSPENDED:
        status, note = _resumed_status(status, job, now)
        notes = (note,)
    is_running = _is_running(job, observed)
    if is_running and status.phase is JobPhase.CREATING:
        status = attrs.evolve(status, phase=JobPhase.RUNNING)
    restarting = [o for o in observed.replicas if _is_restarting(job, o)]
    new_conditions = status.conditions
    if restarting:
        new_conditions = _with_condition(
            new_conditions, job, conditions.RESTARTING, _restarting_message(job, restarting), now
        )
    elif is_running:
        new_conditions = _with_condition(
            new_conditions, job, conditions.RUNNING, job.messages.running(), now
        )
    elif conditions.is_true(new_conditions, conditions.RUNNING) and (
        missing := _missing_deciders(job, observed)
    ):
        # Kueue withdraws the quota of a job that does not return to Running in time.
        message = job.messages.interrupted(_type_counts(missing), _causes(missing))
        new_conditions = _with_condition(new_conditions, job, conditions.RESTARTING, message, now)
    new_conditions = _with_blocked(new_conditions, job, observed, now)
    if any(
        restarts.get(name) != status.restarts.get(name) for name in map(_replica_name, restarting)
    ):
        event_message = job.messages.restarting_event_message(
            _type_counts(restarting), _causes(restarting)
        )
        notes = (*notes, _event_note(job, conditions.RESTARTING, "Warning", event_message))
    return (
        attrs.evolve(
            status,
            conditions=new_conditions,
            replica_statuses=_replica_statuses(job, observed),
            restarts=restarts,
            observed_generation=job.generation,
        ),
        notes,
    )


def has_run(status: JobStatus, observed: Observed) -> bool:
    """Return whether any pod of a job has ever run, as far as its status and pods show."""
    if (
        status.phase not in (JobPhase.NEW, JobPhase.CREATING)
        or status.restarts
        or status.job_restarts
    ):
        return True
    if any(c.type in (conditions.RUNNING, conditions.RESTARTING) for c in status.conditions):
        return True
    ran = (JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED)
    if any(
        r.completed_indexes or any(map(r.count_by_state.get, ran)) for r in status.replica_statuses
    ):
        return True
    idle = (ReplicaState.MISSING, ReplicaState.PENDING)
    return any(one.state not in idle for one in observed.replicas)


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
    new_conditions = conditions.without_condition(status.conditions, conditions.BLOCKED)
    return (
        attrs.evolve(
            status,
            replica_statuses=tuple(
                replica_counts.final_replica_status(job, replica, failure)
                for replica in status.replica_statuses
            ),
            phase=JobPhase.CLEAN_UP,
            state=JobState.FAILED if failure else JobState.SUCCEEDED,
            reason=message if failure else "",
            conditions=_with_condition(
                new_conditions, job, type_, message, now, reason=_terminal_reason(job, failure)
            ),
            completion_time=now,
            failure=failure,
        ),
        _event_note(job, type_, event_type, message),
    )


def suspended_status(job: Job, now: datetime.datetime) -> tuple[JobStatus, tuple[EventNote, ...]]:
    """Return the status of a suspended job: no pods, and no record of earlier runs."""
    status, kind = job.status, job.resource.kind
    if status.phase is JobPhase.SUSPENDED:
        new_conditions = _with_blocked(status.conditions, job, Observed(()), now)
        return attrs.evolve(
            status, conditions=new_conditions, observed_generation=job.generation
        ), ()
    if status.phase is JobPhase.NEW:
        status = attrs.evolve(_created_status(status, job, now), start_time=job.status.start_time)
    reason, message = job.messages.suspended_reason(), f"{kind} {job.key.name} is suspended."
    new_conditions = _with_blocked(status.conditions, job, Observed(()), now)
    changes = [(conditions.SUSPENDED, True)]
    if conditions.is_true(new_conditions, conditions.RUNNING):
        changes.insert(0, (conditions.RUNNING, False))
    for type_, value in changes:
        new = Condition(
            type_, value, reason, message, last_transition_time=now, last_update_time=now
        )
        new_conditions = conditions.with_condition(new_conditions, new)
    return (
        attrs.evolve(
            status,
            phase=JobPhase.SUSPENDED,
            state=JobState.UNKNOWN,
            replica_statuses=tuple(
                ReplicaStatus(r.type, JobState.UNKNOWN, {}, label_selector=r.label_selector)
                for r in status.replica_statuses
            ),
            conditions=conditions.without_condition(new_conditions, conditions.RESTARTING),
            restarts={},
            observed_generation=job.generation,
        ),
        (EventNote("Normal", reason, message),),
    )


def invalid_status(
    status: JobStatus, kind: str, generation: int, reason: str, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    """Return the status of a job that fails permanently before any of its pods has run.

    Quota managers then release its quota, so a corrected spec must not revive it.
    """
    now = now.replace(microsecond=0)
    title = _invalid_reason(kind)
    failed = Condition(
        conditions.FAILED, True, title, reason, last_transition_time=now, last_update_time=now
    )
    kept = conditions.without_condition(status.conditions, conditions.BLOCKED)
    failure = attrs.evolve(
        status,
        phase=JobPhase.FAILED,
        state=JobState.FAILED,
        reason=reason,
        written_by_other_operator=False,
        conditions=conditions.with_condition(kept, failed),
        completion_time=now,
        observed_generation=generation,
    )
    return failure, EventNote("Warning", title, reason)


def malformed_status(
    status: JobStatus, kind: str, generation: int, reason: str, now: datetime.datetime
) -> JobStatus:
    """Return the status of a job whose content cannot be processed; its state is kept."""
    now = now.replace(microsecond=0)
    title = _invalid_reason(kind)
    blocked = Condition(
        conditions.BLOCKED, True, title, reason, last_transition_time=now, last_update_time=now
    )
    new_conditions = conditions.with_condition(status.conditions, blocked)
    return attrs.evolve(status, conditions=new_conditions, observed_generation=generation)


def invalid_spec_events(job: Job, new: JobStatus) -> Iterator[EventNote]:
    """Yield the spec error of a job that has started, if the new status reports it first."""
    title = _invalid_reason(job.resource.kind)
    known = {c.message for c in job.status.conditions if c.reason == title}
    if any(c.reason == title and c.message not in known for c in new.conditions):
        yield EventNote("Warning", title, job.invalid_reason)


def _created_status(status: JobStatus, job: Job, now: datetime.datetime) -> JobStatus:
    """Return the status of a new job."""
    kind = job.resource.kind
    created = Condition(
        conditions.CREATED,
        True,
        f"{kind}Created",
        f"{kind} {job.key.name} is created.",
        last_transition_time=now,
        last_update_time=now,
    )
    return attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=conditions.with_condition(status.conditions, created),
        start_time=status.start_time or now,
    )


def _resumed_status(
    status: JobStatus, job: Job, now: datetime.datetime
) -> tuple[JobStatus, EventNote]:
    kind = job.resource.kind
    reason, message = f"{kind}Resumed", f"{kind} {job.key.name} is resumed."
    over = Condition(
        conditions.SUSPENDED, False, reason, message, last_transition_time=now, last_update_time=now
    )
    resumed = attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=conditions.with_condition(status.conditions, over),
        start_time=now,
    )
    return resumed, EventNote("Normal", reason, message)


def _terminal_reason(job: Job, failure: Failure | None) -> str:
    """Return the reason of a job's end; dlctl's own one if no replica caused it."""
    if failure is None:
        return job.messages.reason(conditions.SUCCEEDED)
    if not failure.replica:
        return f"{job.resource.kind}{conditions.FAILED}"
    return job.messages.failed_reason(failure)


def _with_condition(
    current: tuple[Condition, ...],
    job: Job,
    type_: str,
    message: str,
    now: datetime.datetime,
    *,
    reason: str = "",
) -> tuple[Condition, ...]:
    reason = reason or job.messages.reason(type_)
    new = Condition(type_, True, reason, message, last_transition_time=now, last_update_time=now)
    return conditions.with_condition(current, new)


def _with_blocked(
    current: tuple[Condition, ...], job: Job, observed: Observed, now: datetime.datetime
) -> tuple[Condition, ...]:
    full = job.messages.emits_blocked
    # What a user must fix is reported on every job, even if its users do not expect the condition.
    messages = [job.invalid_reason] if job.invalid_reason else []
    messages += [m for n, m in observed.blocked.items() if full or n in observed.actionable]
    messages += [
        f"{o.replica} waits: {o.waiting_reason}"
        for o in observed.replicas
        if full and o.waiting_reason
    ]
    if not messages:
        return conditions.without_condition(current, conditions.BLOCKED)
    more = len(messages) - _MAX_LISTED
    shown = "; ".join(messages[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")
    reason = _invalid_reason(job.resource.kind) if job.invalid_reason else ""
    return _with_condition(current, job, conditions.BLOCKED, shown, now, reason=reason)


def _replica_statuses(job: Job, observed: Observed) -> tuple[ReplicaStatus, ...]:
    found = tuple(replica_counts.replica_status(job, spec, observed) for spec in job.replica_specs)
    if not job.is_partial:
        return found
    # Types that cannot be decoded now keep their status for later.
    known = {replica.type for replica in found}
    return (*found, *(r for r in job.status.replica_statuses if r.type not in known))


def _invalid_reason(kind: str) -> str:
    return f"{kind}Invalid"


def _replica_name(one: ObservedReplica) -> str:
    return str(one.replica)


def _is_running(job: Job, observed: Observed) -> bool:
    running = {o.replica for o in observed.replicas if o.state is ReplicaState.RUNNING}
    return any(replica in running for replica in job.success_policy.running_replicas)


def _missing_deciders(job: Job, observed: Observed) -> list[ObservedReplica]:
    """Return the deciding replicas whose pods are missing, terminating or not started yet."""
    deciding = [o for o in observed.replicas if o.replica in job.success_policy.running_replicas]
    return [o for o in deciding if o.state in _NOT_RUNNING and not _is_started(o)]


def _is_started(one: ObservedReplica) -> bool:
    # Between two runs of a container, and before its first report, the pod counts as started.
    return one.state is ReplicaState.PENDING and (
        one.is_restarting or (one.pod is not None and one.pod.phase is not PodPhase.PENDING)
    )


def _is_restarting(job: Job, observed: ObservedReplica) -> bool:
    in_place = observed.is_restarting and job.messages.emits_in_place_restarts
    return observed.state is ReplicaState.FAILED_RETRYABLE or in_place


def _restarting_message(job: Job, restarting: Iterable[ObservedReplica]) -> str:
    return job.messages.restarting(_type_counts(restarting), _causes(restarting))


def _type_counts(restarting: Iterable[ObservedReplica]) -> Mapping[str, int]:
    counts = Counter(one.replica.type for one in restarting)
    return {type_: counts[type_] for type_ in sorted(counts)}


def _causes(restarting: Iterable[ObservedReplica]) -> str:
    causes = [
        f"{o.replica}: {o.termination.reason}, {o.termination.message}"
        if o.termination
        else f"{o.replica}"
        for o in restarting
    ]
    more = len(causes) - _MAX_LISTED
    return "; ".join(causes[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")


def _failed_count(status: JobStatus, failure: Failure) -> int:
    """Return how many replicas of the first failed replica's type failed."""
    type_ = replica_counts.failed_replica_type(failure)
    counts = next((r.count_by_state for r in status.replica_statuses if r.type == type_), {})
    return max(counts.get(JobState.FAILED, 0), 1)


def _event_note(job: Job, type_: str, event_type: str, message: str) -> EventNote:
    return EventNote(event_type, f"{job.resource.kind}{type_}", message)
