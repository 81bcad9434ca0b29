"""Events about single pods that training-operator's users expect: exits, problems, rejections.

Each fact is reported once, not at every reconciliation; large batches become one event. Pure except
for :class:`EventDedup`, whose loss only repeats an event.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import ContainerStatus, Pod
from dlctl.api.status.job_status import JobPhase, JobState, JobStatus
from dlctl.errors import MAX_REASON_CHARS, truncated
from dlctl.name_lists import first_names
from dlctl.reconcilers.children.rejection import (
    TRANSIENT_CAUSES,
    Rejection,
    RejectionCause,
    without_numbers,
)
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState

# The reasons why pods do not run, each with the pod's UID.
PodProblems: TypeAlias = frozenset[tuple[str, str]]

# Larger batches become one event: a job of 1,000 replicas must not cost 1,000 events.
MAX_INDIVIDUAL: Final = 6
# The maximum number of names in one message; the others are counted.
MAX_NAMES: Final = 8
EXITED_WITH_CODE: Final = "ExitedWithCode"
FAILED_CREATE: Final = "FailedCreate"
# The maximum for one job at a time: the events of all jobs share a queue.
_MAX_REASONS: Final = 32
# The maximum that is remembered of each pod.
_MAX_PAST_PROBLEMS: Final = 16
_SCHEDULING_GATED: Final = "SchedulingGated"
_ENDED: Final = frozenset({JobPhase.CLEAN_UP, JobPhase.DONE})


def batch_messages(
    verb: str, kind: str, names: Collection[str], *, per_child: bool = False
) -> list[str]:
    """Return messages about an operation on some objects: ``Created pods: x, y``.

    With ``per_child``, one for each of a few, as training-operator has them: ``Created pod: x``.
    """
    shown, kind = sorted(names), kind.lower()
    if len(shown) == 1 or (per_child and len(shown) <= MAX_INDIVIDUAL):
        return [f"{verb} {kind}: {name}" for name in shown]
    if len(shown) <= MAX_NAMES:
        return [f"{verb} {kind}s: {', '.join(shown)}"] if shown else []
    return [f"{verb} {len(shown)} {kind}s: {first_names(shown, MAX_NAMES)}"]


def exit_events(job: Job, new: JobStatus, observed: Observed) -> Iterator[EventNote]:
    """Yield events for exits that are new in the status; known ones were reported before."""
    by_code: dict[int, list[str]] = {}
    tolerated = _newly_tolerated(job, new, observed)
    for one in observed.replicas:
        if not one.pod or not one.termination or one.termination.exit_code is None:
            continue
        if not _has_program_ended(job, one.replica, one.pod):
            # An init container has.
            continue
        if one.replica in tolerated or _is_new_exit(job, new, one):
            by_code.setdefault(one.termination.exit_code, []).append(one.pod.metadata.name)
    for code, names in sorted(by_code.items()):
        message = f"{len(names)} pods exited with code {code}: {first_names(names, 1)}"
        messages = [f"Pod: {job.key.namespace}.{name} exited with code {code}" for name in names]
        for text in messages if len(names) <= MAX_INDIVIDUAL else [message]:
            yield EventNote("Normal", EXITED_WITH_CODE, text)


def new_pod_problems(
    pods: Sequence[Pod], seen: PodProblems
) -> tuple[Sequence[EventNote], PodProblems]:
    """Return the reasons why pods do not run that were not seen before, and all that are now."""
    found = {(p.metadata.uid, t.reason): t for p in pods for t in _pod_problems(p)}
    fresh: dict[str, list[EventNote]] = {}
    for key, note in found.items():
        if key not in seen:
            fresh.setdefault(note.reason, []).append(note)
    current_uids = {pod.metadata.uid for pod in pods}
    # A failing pull alternates between two reasons, so past ones are remembered.
    past = frozenset(t for t in seen if t[0] in current_uids)
    too_many = len(past) > _MAX_PAST_PROBLEMS * len(pods)
    batches = islice(fresh.values(), _MAX_REASONS)
    notes = [note for notes in batches for note in _batch(notes)]
    return notes, (frozenset() if too_many else past) | found.keys()


@attrs.define
class EventDedup:
    """The facts reported about one job that its status does not show."""

    seen_problems: PodProblems = frozenset()
    _seen_rejections: frozenset[str] = frozenset()

    def rejections(self, job: Job, rejected: Mapping[str, Rejection]) -> list[EventNote]:
        """Return new reasons why children could not be created.

        For users who expect no events about single pods, taken names and quotas show in the
        condition only.
        """
        notes = [
            note
            for name, rejection in rejected.items()
            for note in _rejection_events(job, name, rejection)
        ]
        # A message that differs only in a request id is not new.
        new = [note for note in notes if without_numbers(note.message) not in self._seen_rejections]
        self._seen_rejections = frozenset(without_numbers(note.message) for note in notes)
        return _batch(new)


def _rejection_events(job: Job, name: str, rejection: Rejection) -> Iterator[EventNote]:
    kind = rejection.resource.kind
    if job.messages.name_conflict_reason and rejection.cause is RejectionCause.ALREADY_EXISTS:
        owner = f"is not managed by {job.resource.kind} {job.key.name}"
        message = f'Resource "{name}" of Kind "{kind}" already exists and {owner}'
        yield EventNote("Warning", job.messages.name_conflict_reason, message)
    if job.messages.emits_pod_events or rejection.cause not in TRANSIENT_CAUSES:
        yield EventNote(
            "Warning", FAILED_CREATE + kind, f"Error creating: {rejection.server_message}"
        )


def _has_program_ended(job: Job, replica: Replica, pod: Pod) -> bool:
    spec = job.replica_spec(replica.type)
    status = pod.container_status(spec.container) if spec else None
    return status is None or any(s and s.terminated for s in (status.state, status.last_state))


def _is_new_exit(job: Job, new: JobStatus, one: ObservedReplica) -> bool:
    type_ = one.replica.type
    if one.state is ReplicaState.SUCCEEDED:
        return one.replica.index not in job.status.completed_indexes(type_)
    if one.state is ReplicaState.FAILED_RETRYABLE:
        return _is_newly_counted(job, new, one)
    # It fails its job, so the status reports it together with the job's failure.
    ends = (
        one.state is ReplicaState.FAILED_PERMANENT
        and type_ not in job.success_policy.tolerated_types
    )
    return ends and new.phase in _ENDED and job.status.phase not in _ENDED


def _is_newly_counted(job: Job, new: JobStatus, one: ObservedReplica) -> bool:
    """Return whether the status counts this pod for the first time."""
    uid = one.pod.metadata.uid if one.pod else ""
    after, before = (s.restarts.get(str(one.replica)) for s in (new, job.status))
    return after is not None and after.pod_uid == uid != (before.pod_uid if before else "")


def _newly_tolerated(job: Job, new: JobStatus, observed: Observed) -> frozenset[Replica]:
    """Return the replicas that have newly failed without failing their job.

    The status has only their number, so the most recently ended ones are the new ones.
    """
    found: list[Replica] = []
    for type_ in job.success_policy.tolerated_types:
        of_type = [one for one in observed.replicas if one.replica.type == type_]
        retried = [
            o
            for o in of_type
            if o.state is ReplicaState.FAILED_RETRYABLE and _is_newly_counted(job, new, o)
        ]
        number = _failed_count(new, type_) - _failed_count(job.status, type_) - len(retried)
        permanent = [
            o for o in of_type if o.state is ReplicaState.FAILED_PERMANENT and o.termination
        ]
        permanent.sort(key=_end_time, reverse=True)
        found += [one.replica for one in permanent[: max(number, 0)]]
    return frozenset(found)


def _end_time(one: ObservedReplica) -> float:
    return one.termination.time.timestamp() if one.termination else 0.0


def _failed_count(status: JobStatus, type_: str) -> int:
    replicas = (r for r in status.replica_statuses if r.type == type_)
    return sum(replica.count_by_state.get(JobState.FAILED, 0) for replica in replicas)


def _batch(notes: Sequence[EventNote]) -> list[EventNote]:
    if len(notes) <= MAX_INDIVIDUAL:
        return list(notes)
    more = f" (and {len(notes) - 1} more like this)"
    return [attrs.evolve(notes[0], message=notes[0].message + more)]


def _pod_problems(pod: Pod) -> Iterator[EventNote]:
    # A gated pod waits by design.
    if pod.metadata.is_terminating or pod.phase.finished or pod.is_gated or pod.status is None:
        return
    name = pod.metadata.name
    # Reported together: while an init container runs, the others have no status of interest.
    containers = [*pod.init_container_statuses, *pod.container_statuses]
    if containers:
        for container in containers:
            yield from _container_problems(name, container)
        return
    latest = max(
        pod.status.conditions or (),
        key=lambda c: c.last_transition_time.timestamp() if c.last_transition_time else 0.0,
        default=None,
    )
    # The gates were just removed, and the scheduler has yet to update the condition.
    if latest is None or (latest.reason == _SCHEDULING_GATED and not pod.scheduling_gates):
        return
    if latest.status != "True" and latest.reason:
        message = f"Error pod {name} condition message: {latest.message or ''}"
        yield _warning(latest.reason, message)


def _warning(reason: str, message: str) -> EventNote:
    return EventNote("Warning", truncated(reason, MAX_REASON_CHARS), truncated(message))


def _container_problems(pod: str, container: ContainerStatus) -> Iterator[EventNote]:
    state, title = container.state, f"Error pod {pod} container {container.name}"
    if state and state.terminated and state.terminated.exit_code:
        end = state.terminated
        outcome = f"exitCode: {end.exit_code} terminated message: {end.message or ''}"
        yield _warning(end.reason or "Error", f"{title} {outcome}")
    if state and state.waiting and state.waiting.message and state.waiting.reason:
        yield _warning(state.waiting.reason, f"{title} waiting message: {state.waiting.message}")
