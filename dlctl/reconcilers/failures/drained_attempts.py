"""Attempts that end because the nodes of their replicas are about to go. Pure.

The policy restarts such replicas, or their job, before that. Replicas that it does not decide about
stay: workers of elastic jobs are evacuated, and the others end with the node.
"""

import datetime
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import FailureAction
from dlctl.api.status.verdict import (
    MAX_COLLATERAL,
    MAX_DRAINED_NODES,
    Attempt,
    Confidence,
    Verdict,
)
from dlctl.name_lists import first_names
from dlctl.reconcilers.failures.attempts import closed
from dlctl.reconcilers.failures.policy_rules import decide
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState

_STARTED: Final = (ReplicaState.PENDING, ReplicaState.RUNNING)
# An attempt that had to return to the node stays this long before the same signal ends it again.
_ONCE_PER: Final = datetime.timedelta(hours=1)


@attrs.frozen
class _Leaving:
    """A replica that has to leave its node."""

    pod: Pod
    verdict: Verdict
    # The action of the policy.
    action: FailureAction

    @property
    def moves_alone(self) -> bool:
        return self.action.restarts_replica


def drain_verdict(job: Job, observed: Observed, now: datetime.datetime) -> Verdict | None:
    """Return why the attempt ends now: one of its replicas is on a node that is draining.

    A replica whose end restarts or fails the whole job comes first. None if no replica is on one,
    and for jobs without a failure policy: their replicas stay until the node ends them.
    """
    leaving = _still_to_leave(job, job.status.attempts, observed, now, job.status.counted_restarts)
    whole = [one for one in leaving if not one.moves_alone]
    if not leaving or whole:
        return whole[0].verdict if whole else None
    # All of them move at once: their ends belong to the same attempt.
    first, *others = (one.verdict for one in leaving)
    names = tuple(one.replica for one in others)
    return attrs.evolve(first, collateral=names[:MAX_COLLATERAL], collateral_count=len(names))


def with_drain_end(
    job: Job, attempts: tuple[Attempt, ...], observed: Observed, now: datetime.datetime
) -> tuple[Attempt, ...]:
    """Return the attempts; the last one ends now if one of its nodes is draining."""
    verdict = drain_verdict(job, observed, now)
    if verdict is None:
        return attempts
    *before, last = closed(job, attempts, now, verdict)
    others = _still_to_leave(job, [last], observed, now, job.status.counted_restarts)
    return (*before, _with_nodes(last, others, now))


def with_drained_nodes(
    job: Job, attempts: tuple[Attempt, ...], observed: Observed, now: datetime.datetime
) -> tuple[Attempt, ...]:
    """Return the attempts; the last, which is over, gets nodes that drained before the next began.

    Replicas that leave such a node without the others belong to this attempt: their restarts are
    not counted again.
    """
    *before, last = attempts
    found = _still_to_leave(job, attempts, observed, now, counted=-1)
    leaving = [one for one in found if one.moves_alone]
    after = _with_nodes(last, leaving, now)
    if after == last or last.verdict is None:
        return attempts
    names = [one.verdict.replica for one in leaving if one.verdict.node in after.drained_nodes]
    return (*before, attrs.evolve(after, verdict=last.verdict.with_collateral(names)))


def pods_to_move(job: Job, observed: Observed, now: datetime.datetime) -> tuple[Pod, ...]:
    """Return the pods that the policy replaces alone, since their nodes are draining.

    The status already records the end of the attempt. Newer pods stay: they had to return to the
    node.
    """
    last = job.status.last_attempt
    if last is None or last.end_time is None or last.verdict is None:
        return ()
    # Restarts were counted with the end of the attempt.
    leaving = [one for one in _leaving(job, observed, now, counted=-1) if one.moves_alone]
    return tuple(
        one.pod
        for one in leaving
        if not _is_newer(
            one.pod, min(_ends_by(job.status.attempts, one.verdict), default=last.end_time)
        )
    )


def moving_events(job: Job, pods: Sequence[Pod]) -> tuple[EventNote, ...]:
    """Return the event about pods that are replaced since their nodes are draining."""
    if not pods:
        return ()
    names = first_names([pod.metadata.name for pod in pods])
    message = f"the nodes of {names} are about to go: the failure policy replaces these pods"
    return (EventNote("Warning", job.messages.reason("NodeDraining"), message),)


def _leaving(
    job: Job, observed: Observed, now: datetime.datetime, counted: int
) -> Iterator[_Leaving]:
    """Yield the replicas on draining nodes, with what follows after the counted restarts."""
    policy, draining = job.run_policy.failure_policy, observed.children.nodes.draining
    if policy is None or not draining or job.is_partial or not job.status.phase.is_active:
        return
    for one in observed.replicas:
        if one.pod is None or one.pod.node_name not in draining or one.state not in _STARTED:
            continue
        spec = job.replica_spec(one.replica.type)
        if spec is None or not job.failure_policy_decides(spec.type):
            continue
        verdict = _verdict(one, one.pod, observed, now)
        action = decide(policy, verdict, one.pod, spec.container, counted).action
        yield _Leaving(one.pod, verdict, action)


def _still_to_leave(
    job: Job, attempts: Sequence[Attempt], observed: Observed, now: datetime.datetime, counted: int
) -> list[_Leaving]:
    """Return the replicas that have to leave nodes which no attempt has left recently."""
    leaving = _leaving(job, observed, now, counted)
    return [one for one in leaving if not _has_left(attempts, one.verdict)]


def _with_nodes(attempt: Attempt, leaving: Sequence[_Leaving], now: datetime.datetime) -> Attempt:
    """Return an attempt with the nodes that replicas leave, as far as it remembers them."""
    found = dict.fromkeys((one.verdict.node for one in leaving), now)
    nodes = {**attempt.drained_nodes, **found}
    return attrs.evolve(attempt, drained_nodes=dict(islice(nodes.items(), MAX_DRAINED_NODES)))


def _verdict(one: ObservedReplica, pod: Pod, observed: Observed, now: datetime.datetime) -> Verdict:
    signal = observed.children.nodes.draining[pod.node_name]
    return Verdict(
        cause=signal.cause,
        confidence=Confidence.HIGH,
        message=f"node {pod.node_name} is about to go: it {signal.text}",
        time=now.replace(microsecond=0),
        replica=str(one.replica),
        pod=pod.metadata.name,
        node=pod.node_name,
    )


def _has_left(attempts: Sequence[Attempt], verdict: Verdict) -> bool:
    """Return whether an earlier attempt has left the same node recently."""
    return next(_ends_by(attempts, verdict), None) is not None


def _ends_by(attempts: Sequence[Attempt], verdict: Verdict) -> Iterator[datetime.datetime]:
    """Yield when attempts made way for the same signal, or beside another for its node."""
    for attempt in attempts:
        one, time = attempt.verdict, attempt.drained_nodes.get(verdict.node)
        if one is not None and (one.node, one.message) == (verdict.node, verdict.message):
            time = one.time
        if time is not None and verdict.time - time < _ONCE_PER:
            yield time


def _is_newer(pod: Pod, time: datetime.datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is not None and created > time
