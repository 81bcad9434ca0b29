"""What training-operator's users read in events about single pods: exits, troubles, refusals.

Each fact is told once, and not at every reconciliation; of many at a time one message tells. Pure
but for :class:`Told`, whose loss repeats an event and changes nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.job import Job, Replica
from dlctl.api.pods import ContainerStatus, Pod
from dlctl.api.status import JobPhase, JobState, JobStatus
from dlctl.reconcilers.creation import Cause, Refusal
from dlctl.reconcilers.observe import Observed, ObservedReplica, Situation
from dlctl.reconcilers.refusals import USUAL, gist
from dlctl.reconcilers.status import Note

# Beyond this many of a batch one event tells of all: a job of 1,000 must not cost 1,000 events.
EACH: Final = 6
EXITED_WITH_CODE: Final = "ExitedWithCode"
FAILED_CREATE: Final = "FailedCreate"
_GATED: Final = "SchedulingGated"
_ENDED: Final = frozenset({JobPhase.CLEAN_UP, JobPhase.DONE})


def listed(done: str, kind: str, names: Iterable[str]) -> Iterator[str]:
    """Yield what is said of objects to which something was done: ``Created pod: x``."""
    names, kind = sorted(names), kind.lower()
    if len(names) <= EACH:
        yield from (f"{done} {kind}: {name}" for name in names)
    else:
        yield f"{done} {len(names)} {kind}s: {names[0]} and so on"


def exits(job: Job, new: JobStatus, observed: Observed) -> Iterator[Note]:
    """Yield the exits that the status gets to know of; those that it knows were told before."""
    by_code: dict[int, list[str]] = {}
    tolerated = _newly_tolerated(job, new, observed)
    for one in observed.replicas:
        if not one.pod or not one.ending or one.ending.exit_code is None:
            continue
        if one.replica in tolerated or _news(job, new, one):
            by_code.setdefault(one.ending.exit_code, []).append(one.pod.metadata.name)
    for code, names in sorted(by_code.items()):
        message = f"{len(names)} pods exited with code {code}: {names[0]} and so on"
        messages = [f"Pod: {job.key.namespace}.{name} exited with code {code}" for name in names]
        for said in messages if len(names) <= EACH else [message]:
            yield Note("Normal", EXITED_WITH_CODE, said)


@attrs.define
class Told:
    """What has been told of one job, as far as its status does not say."""

    _troubles: frozenset[tuple[str, str]] = frozenset()
    _refusals: frozenset[str] = frozenset()

    def troubles(self, pods: Sequence[Pod]) -> list[Note]:
        """Return why pods do not run, as far as that is news."""
        found = {(p.metadata.uid, t.reason): t for p in pods for t in _troubles(p)}
        fresh: dict[str, list[Note]] = {}
        for key, note in found.items():
            if key not in self._troubles:
                fresh.setdefault(note.reason, []).append(note)
        there = {pod.metadata.uid for pod in pods}
        # A pull that fails has two reasons in turn, so one that is over is not forgotten.
        self._troubles = frozenset(t for t in self._troubles if t[0] in there) | found.keys()
        return [note for notes in fresh.values() for note in _few(notes)]

    def refusals(self, job: Job, refused: Mapping[str, Refusal]) -> list[Note]:
        """Return why children could not be created, as far as that is news.

        Where users know no events about single pods, a name or a quota is left to the condition.
        """
        notes = [note for name, refusal in refused.items() for note in _refused(job, name, refusal)]
        # An answer that differs from the last one by a request id is no news.
        fresh = [note for note in notes if gist(note.message) not in self._refusals]
        self._refusals = frozenset(gist(note.message) for note in notes)
        return _few(fresh)


def _refused(job: Job, name: str, refusal: Refusal) -> Iterator[Note]:
    kind = refusal.resource.kind
    if job.reporting.taken_reason and refusal.cause is Cause.NAME_TAKEN:
        owner = f"is not managed by {job.resource.kind} {job.key.name}"
        message = f'Resource "{name}" of Kind "{kind}" already exists and {owner}'
        yield Note("Warning", job.reporting.taken_reason, message)
    if job.reporting.tells_pods or refusal.cause not in USUAL:
        yield Note("Warning", FAILED_CREATE + kind, f"Error creating: {refusal.error}")


def _news(job: Job, new: JobStatus, one: ObservedReplica) -> bool:
    type_ = one.replica.type
    if one.situation is Situation.SUCCEEDED:
        return one.replica.index not in job.status.completed(type_)
    if one.situation is Situation.LOST:
        return _is_newly_lost(job, new, one)
    # It ends its job, so the status knows of it when it knows of the job's end.
    ends = one.situation is Situation.BROKEN and type_ not in job.deciders.dispensable
    return ends and new.phase in _ENDED and job.status.phase not in _ENDED


def _is_newly_lost(job: Job, new: JobStatus, one: ObservedReplica) -> bool:
    """Tell whether the status counts this very pod for the first time."""
    uid = one.pod.metadata.uid if one.pod else ""
    after, before = (s.restarts.get(str(one.replica)) for s in (new, job.status))
    return after is not None and after.pod_uid == uid != (before.pod_uid if before else "")


def _newly_tolerated(job: Job, new: JobStatus, observed: Observed) -> frozenset[Replica]:
    """Return the replicas that have failed since the last status without failing their job.

    The status has just their number, so the last to end are the new ones.
    """
    found: list[Replica] = []
    for type_ in job.deciders.dispensable:
        mine = [one for one in observed.replicas if one.replica.type == type_]
        lost = [o for o in mine if o.situation is Situation.LOST and _is_newly_lost(job, new, o)]
        number = _failed(new, type_) - _failed(job.status, type_) - len(lost)
        broken = [o for o in mine if o.situation is Situation.BROKEN and o.ending]
        broken.sort(key=_end_time, reverse=True)
        found += [one.replica for one in broken[: max(number, 0)]]
    return frozenset(found)


def _end_time(one: ObservedReplica) -> float:
    return one.ending.time.timestamp() if one.ending else 0.0


def _failed(status: JobStatus, type_: str) -> int:
    replicas = (r for r in status.replica_statuses if r.type == type_)
    return sum(replica.counts.get(JobState.FAILED, 0) for replica in replicas)


def _few(notes: Sequence[Note]) -> list[Note]:
    if len(notes) <= EACH:
        return list(notes)
    more = f" (and so of {len(notes) - 1} more)"
    return [attrs.evolve(notes[0], message=notes[0].message + more)]


def _troubles(pod: Pod) -> Iterator[Note]:
    # One that we hold back ourselves is in no trouble.
    if pod.metadata.terminating or pod.phase.finished or pod.gated or pod.status is None:
        return
    name = pod.metadata.name
    # Reported on together: while an init container runs, the others say nothing of themselves.
    status = pod.status
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    if containers:
        for container in containers:
            yield from _of_container(name, container)
        return
    latest = max(
        pod.status.conditions or (),
        key=lambda c: c.last_transition_time.timestamp() if c.last_transition_time else 0.0,
        default=None,
    )
    # A pod without gates was just let go, and the scheduler has yet to say so.
    let_go = not (pod.spec and pod.spec.scheduling_gates)
    if latest is None or (latest.reason == _GATED and let_go):
        return
    if latest.status != "True" and latest.reason:
        message = f"Error pod {name} condition message: {latest.message or ''}"
        yield Note("Warning", latest.reason, message)


def _of_container(pod: str, container: ContainerStatus) -> Iterator[Note]:
    state, who = container.state, f"Error pod {pod} container {container.name}"
    if state and state.terminated and state.terminated.exit_code:
        end = state.terminated
        said = f"exitCode: {end.exit_code} terminated message: {end.message or ''}"
        yield Note("Warning", end.reason or "Error", f"{who} {said}")
    if state and state.waiting and state.waiting.message and state.waiting.reason:
        yield Note(
            "Warning", state.waiting.reason, f"{who} waiting message: {state.waiting.message}"
        )
