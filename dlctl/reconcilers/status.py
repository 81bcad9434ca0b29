"""The next status of a job, from its last one and what is observed. Pure.

Equal to the last one if nothing has moved, and then nothing is written.
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
from dlctl.api.status import Failure, JobPhase, JobState, JobStatus, ReplicaStatus, Restart
from dlctl.reconcilers import counting
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation
from dlctl.reconcilers.verdict import Verdict

_NAMES_SHOWN: Final = 3
# Of a replica that ran: its pod, or the one after it, does not run.
_NOT_BACK: Final = frozenset({Situation.MISSING, Situation.TERMINATING, Situation.PENDING})


@attrs.frozen
class Note:
    """Something users should hear of, as an event on the job, once its cause is written down."""

    type: str
    reason: str
    message: str


def ongoing(
    job: Job, observed: Observed, restarts: Mapping[str, Restart], now: datetime.datetime
) -> tuple[JobStatus, tuple[Note, ...]]:
    """Return the status of a job that has not ended, and what there is to tell of the change."""
    status = job.status
    notes: tuple[Note, ...] = ()
    if status.phase is JobPhase.NEW:
        status = _begun(status, job, now)
    elif status.phase is JobPhase.SUSPENDED:
        status, note = _resumed(status, job, now)
        notes = (note,)
    runs = _runs(job, observed)
    if runs and status.phase is JobPhase.CREATING:
        status = attrs.evolve(status, phase=JobPhase.RUNNING)
    lost = [o for o in observed.replicas if _restarts(job, o)]
    stated = status.conditions
    if lost:
        stated = _state(stated, job, conditions.RESTARTING, _restarting(job, lost), now)
    elif runs:
        stated = _state(stated, job, conditions.RUNNING, job.reporting.running(job), now)
    elif conditions.holds(stated, conditions.RUNNING) and (gone := _gone(job, observed)):
        # Kueue takes back the quota of a job that does not come back to Running in time.
        message = job.reporting.interrupted(job, _types(gone), _causes(gone))
        stated = _state(stated, job, conditions.RESTARTING, message, now)
    stated = _blocked(stated, job, observed, now)
    if any(restarts.get(name) != status.restarts.get(name) for name in map(_name, lost)):
        told = job.reporting.restarting_event(job, _types(lost), _causes(lost))
        notes = (*notes, _note(job, conditions.RESTARTING, "Warning", told))
    return (
        attrs.evolve(
            status,
            conditions=stated,
            replica_statuses=_replica_statuses(job, observed),
            restarts=restarts,
            observed_generation=job.generation,
        ),
        notes,
    )


def has_run(status: JobStatus, observed: Observed) -> bool:
    """Return whether any pod of a job has ever run, as far as its status and its pods show."""
    if (
        status.phase not in (JobPhase.NEW, JobPhase.CREATING)
        or status.restarts
        or status.whole_restarts
    ):
        return True
    if any(c.type in (conditions.RUNNING, conditions.RESTARTING) for c in status.conditions):
        return True
    ran = (JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED)
    if any(r.completed or any(map(r.counts.get, ran)) for r in status.replica_statuses):
        return True
    idle = (Situation.MISSING, Situation.PENDING)
    return any(one.situation not in idle for one in observed.replicas)


def concluded(
    job: Job, status: JobStatus, verdict: Verdict, now: datetime.datetime
) -> tuple[JobStatus, Note]:
    """Return the status of a job that has just ended; its pods may still have to go."""
    failure = verdict.failure
    if failure is None:
        type_, message, level = conditions.SUCCEEDED, job.reporting.succeeded(job), "Normal"
    else:
        type_, level = conditions.FAILED, job.reporting.failed_event_type(job, failure)
        message = job.reporting.failed(job, failure, _failed_like(status, failure))
    stated = conditions.without(status.conditions, conditions.BLOCKED)
    return (
        attrs.evolve(
            status,
            replica_statuses=tuple(
                counting.at_end(job, replica, failure) for replica in status.replica_statuses
            ),
            phase=JobPhase.CLEAN_UP,
            state=JobState.FAILED if failure else JobState.SUCCEEDED,
            reason=message if failure else "",
            conditions=_state(stated, job, type_, message, now, reason=_reason(job, failure)),
            completion_time=now,
            failure=failure,
        ),
        _note(job, type_, level, message),
    )


def suspended(job: Job, now: datetime.datetime) -> tuple[JobStatus, tuple[Note, ...]]:
    """Return the status of a job that is to have no pods; what its replicas have done is void."""
    status, kind = job.status, job.resource.kind
    if status.phase is JobPhase.SUSPENDED:
        stated = _blocked(status.conditions, job, Observed(()), now)
        return attrs.evolve(status, conditions=stated, observed_generation=job.generation), ()
    if status.phase is JobPhase.NEW:
        status = attrs.evolve(_begun(status, job, now), start_time=job.status.start_time)
    reason, message = job.reporting.suspended_reason(job), f"{kind} {job.key.name} is suspended."
    stated = _blocked(status.conditions, job, Observed(()), now)
    changes = [(conditions.SUSPENDED, True)]
    if conditions.holds(stated, conditions.RUNNING):
        changes.insert(0, (conditions.RUNNING, False))
    for type_, value in changes:
        new = Condition(type_, value, reason, message, since=now, updated=now)
        stated = conditions.with_condition(stated, new)
    return (
        attrs.evolve(
            status,
            phase=JobPhase.SUSPENDED,
            state=JobState.UNKNOWN,
            replica_statuses=tuple(
                ReplicaStatus(r.type, JobState.UNKNOWN, {}, selector=r.selector)
                for r in status.replica_statuses
            ),
            conditions=conditions.without(stated, conditions.RESTARTING),
            restarts={},
            observed_generation=job.generation,
        ),
        (Note("Normal", reason, message),),
    )


def invalid(
    status: JobStatus, kind: str, generation: int, reason: str, now: datetime.datetime
) -> tuple[JobStatus, Note]:
    """Return the status of a job that fails before any of its pods has run: for good.

    Its quota is given back by whoever counts it, so that another spec does not revive it.
    """
    now = now.replace(microsecond=0)
    title = _invalid_reason(kind)
    failed = Condition(conditions.FAILED, True, title, reason, since=now, updated=now)
    kept = conditions.without(status.conditions, conditions.BLOCKED)
    failure = attrs.evolve(
        status,
        phase=JobPhase.FAILED,
        state=JobState.FAILED,
        reason=reason,
        foreign=False,
        conditions=conditions.with_condition(kept, failed),
        completion_time=now,
        observed_generation=generation,
    )
    return failure, Note("Warning", title, reason)


def malformed(
    status: JobStatus, kind: str, generation: int, reason: str, now: datetime.datetime
) -> JobStatus:
    """Return the status of a job about which nothing can be decided; it keeps its state."""
    now = now.replace(microsecond=0)
    title = _invalid_reason(kind)
    blocked = Condition(conditions.BLOCKED, True, title, reason, since=now, updated=now)
    stated = conditions.with_condition(status.conditions, blocked)
    return attrs.evolve(status, conditions=stated, observed_generation=generation)


def unreadable(job: Job, new: JobStatus) -> Iterator[Note]:
    """Yield what is wrong with the spec of a job that has begun, if its new status is the first."""
    title = _invalid_reason(job.resource.kind)
    known = {c.message for c in job.status.conditions if c.reason == title}
    if any(c.reason == title and c.message not in known for c in new.conditions):
        yield Note("Warning", title, job.invalid_reason)


def _begun(status: JobStatus, job: Job, now: datetime.datetime) -> JobStatus:
    """Return the status of a job that is new."""
    kind = job.resource.kind
    created = Condition(
        conditions.CREATED,
        True,
        f"{kind}Created",
        f"{kind} {job.key.name} is created.",
        since=now,
        updated=now,
    )
    return attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=conditions.with_condition(status.conditions, created),
        start_time=status.start_time or now,
    )


def _resumed(status: JobStatus, job: Job, now: datetime.datetime) -> tuple[JobStatus, Note]:
    kind = job.resource.kind
    reason, message = f"{kind}Resumed", f"{kind} {job.key.name} is resumed."
    over = Condition(conditions.SUSPENDED, False, reason, message, since=now, updated=now)
    resumed = attrs.evolve(
        status,
        phase=JobPhase.CREATING,
        state=JobState.RUNNING,
        conditions=conditions.with_condition(status.conditions, over),
        start_time=now,
    )
    return resumed, Note("Normal", reason, message)


def _reason(job: Job, failure: Failure | None) -> str:
    """Return the reason of a job's end; where no replica is to blame, it is our own."""
    if failure is None:
        return job.reporting.reason(job, conditions.SUCCEEDED)
    if not failure.replica:
        return f"{job.resource.kind}{conditions.FAILED}"
    return job.reporting.failed_reason(job, failure)


def _state(
    stated: tuple[Condition, ...],
    job: Job,
    type_: str,
    message: str,
    now: datetime.datetime,
    *,
    reason: str = "",
) -> tuple[Condition, ...]:
    reason = reason or job.reporting.reason(job, type_)
    new = Condition(type_, True, reason, message, since=now, updated=now)
    return conditions.with_condition(stated, new)


def _blocked(
    stated: tuple[Condition, ...], job: Job, observed: Observed, now: datetime.datetime
) -> tuple[Condition, ...]:
    full = job.reporting.states_blocked
    # What somebody has to mend is stated of every job, whatever its users expect.
    messages = [job.invalid_reason] if job.invalid_reason else []
    messages += [m for n, m in observed.blocked.items() if full or n in observed.refused]
    messages += [f"{o.replica} waits: {o.stuck}" for o in observed.replicas if full and o.stuck]
    if not messages:
        return conditions.without(stated, conditions.BLOCKED)
    more = len(messages) - _NAMES_SHOWN
    shown = "; ".join(messages[:_NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    reason = _invalid_reason(job.resource.kind) if job.invalid_reason else ""
    return _state(stated, job, conditions.BLOCKED, shown, now, reason=reason)


def _replica_statuses(job: Job, observed: Observed) -> tuple[ReplicaStatus, ...]:
    found = tuple(counting.replica_status(job, spec, observed) for spec in job.replica_specs)
    if not job.partial:
        return found
    # What is remembered of a type that cannot be read now is needed when it can be again.
    known = {replica.type for replica in found}
    return (*found, *(r for r in job.status.replica_statuses if r.type not in known))


def _invalid_reason(kind: str) -> str:
    return f"{kind}Invalid"


def _name(one: ObservedReplica) -> str:
    return str(one.replica)


def _runs(job: Job, observed: Observed) -> bool:
    running = {o.replica for o in observed.replicas if o.situation is Situation.RUNNING}
    return any(replica in running for replica in job.deciders.run)


def _gone(job: Job, observed: Observed) -> list[ObservedReplica]:
    """Return the replicas by which the job ran, if their pods are gone, going or new."""
    deciding = [o for o in observed.replicas if o.replica in job.deciders.run]
    return [o for o in deciding if o.situation in _NOT_BACK and not _is_started(o)]


def _is_started(one: ObservedReplica) -> bool:
    # Between two runs of a container, and before its first report, a pod is no less there.
    return one.situation is Situation.PENDING and (
        one.restarting or (one.pod is not None and one.pod.phase is not PodPhase.PENDING)
    )


def _restarts(job: Job, observed: ObservedReplica) -> bool:
    in_place = observed.restarting and job.reporting.states_restarts_in_place
    return observed.situation is Situation.LOST or in_place


def _restarting(job: Job, lost: Iterable[ObservedReplica]) -> str:
    return job.reporting.restarting(job, _types(lost), _causes(lost))


def _types(lost: Iterable[ObservedReplica]) -> Mapping[str, int]:
    counts = Counter(one.replica.type for one in lost)
    return {type_: counts[type_] for type_ in sorted(counts)}


def _causes(lost: Iterable[ObservedReplica]) -> str:
    causes = [
        f"{o.replica}: {o.ending.reason}, {o.ending.message}" if o.ending else f"{o.replica}"
        for o in lost
    ]
    more = len(causes) - _NAMES_SHOWN
    return "; ".join(causes[:_NAMES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _failed_like(status: JobStatus, failure: Failure) -> int:
    """Count the replicas that failed of the type of the first that did."""
    type_ = counting.blamed(failure)
    counts = next((r.counts for r in status.replica_statuses if r.type == type_), {})
    return max(counts.get(JobState.FAILED, 0), 1)


def _note(job: Job, type_: str, level: str, message: str) -> Note:
    return Note(level, f"{job.resource.kind}{type_}", message)
