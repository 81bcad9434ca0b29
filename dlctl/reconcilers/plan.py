"""The one decision of the controller: what a job needs now. Pure: values in, values out.

Only what can be done twice without harm is ever planned, because a plan may be carried out in
part, or made from a view of the cluster that lags behind.
"""

import datetime
from collections.abc import Collection, Iterable, Iterator

import attrs

from dlctl.api.companions import Companion
from dlctl.api.elastic import WORKER
from dlctl.api.job import Job, Replica
from dlctl.api.meta import Resource
from dlctl.api.pods import Pod, Service
from dlctl.api.status import JobPhase, JobStatus
from dlctl.reconcilers import cleanup, companions, limits, restarts, status, whole_restarts
from dlctl.reconcilers.companions import CompanionChanges
from dlctl.reconcilers.gang_retries import GangRetry, gang_retry
from dlctl.reconcilers.kueue import kept_by_kueue
from dlctl.reconcilers.observe import Observed, Situation
from dlctl.reconcilers.overstays import overstays
from dlctl.reconcilers.placement import outdated
from dlctl.reconcilers.restarts import RestartBackoff
from dlctl.reconcilers.status import Note
from dlctl.reconcilers.tellings import exits
from dlctl.reconcilers.verdict import Verdict, verdict


@attrs.frozen
class Policy:
    """What is settled for all jobs of a controller; its settings, as far as plans need them."""

    backoff: RestartBackoff = attrs.field(factory=RestartBackoff)
    # Seconds after its deletion timestamp; 0 means never.
    force_delete_after_s: float = 0.0


@attrs.frozen
class Desired:
    """What a job is to have beside its pods, while it runs."""

    # The replicas that others dial.
    services: Collection[Replica] = ()
    companions: Iterable[Companion] = ()
    # Companions that are retained without pods, as they are then.
    resting: Iterable[Companion] = ()
    # The resources whose objects are left to go with the job.
    lasting: Collection[Resource] = ()
    # Why no pod is to be made yet.
    held: str = ""
    # Whether replicas that come after all others may be made.
    launches: bool = True


@attrs.frozen
class Plan:
    """What to write, remove and make, in this order; nothing but the status if all is well.

    The status comes first: nothing is deleted before the reason for it is written down.
    """

    status: JobStatus
    notes: tuple[Note, ...] = ()
    deleted_pods: tuple[Pod, ...] = ()
    # Told to go long ago: they are deleted without waiting for their node.
    forced_pods: tuple[Pod, ...] = ()
    deleted_services: tuple[Service, ...] = ()
    services: tuple[Replica, ...] = ()
    pods: tuple[Replica, ...] = ()
    # Deleted and kept by Kueue alone, whose successors need their names.
    kept_pods: tuple[Pod, ...] = ()
    # Held back until the others run, which they do now.
    released_pods: tuple[Pod, ...] = ()
    companions: CompanionChanges = attrs.field(factory=CompanionChanges)
    # The scheduler looks again at the gang whose PodGroup is patched.
    gang_retry: GangRetry = attrs.field(factory=GangRetry)
    # Whether there is more to do than this; see ``slices``.
    unfinished: bool = False
    # Whether the job's own time is over.
    expired: bool = False
    # Seconds until time alone asks for another plan.
    wake_after_s: float | None = None

    @property
    def applies(self) -> bool:
        """Return whether children are to be created or changed."""
        companions = self.companions.made or self.companions.patched
        return bool(self.pods or self.services or self.released_pods or companions)


def soonest(*waits_s: float | None) -> float | None:
    """Return the shortest of some waits in seconds; None is no wait at all, and 0 is now."""
    return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)


def plan(
    job: Job,
    observed: Observed,
    desired: Desired,
    now: datetime.datetime,
    policy: Policy,
) -> Plan:
    """Return what the job needs now."""
    now = now.replace(microsecond=0)
    made = _plan(job, observed, desired, now, policy.backoff)
    if job.reporting.tells_pods and made.status != job.status:
        made = attrs.evolve(made, notes=(*exits(job, made.status, observed), *made.notes))
    if job.invalid_reason:
        made = attrs.evolve(made, notes=(*made.notes, *status.unreadable(job, made.status)))
    # Also once the job has ended: a pod that stays holds its share of a quota.
    over = overstays(observed.pods, now, policy.force_delete_after_s)
    wake_after_s = soonest(made.wake_after_s, over.next_s, observed.phase_due_s)
    mine = attrs.evolve(made.status, foreign=False)
    return attrs.evolve(made, status=mine, forced_pods=over.pods, wake_after_s=wake_after_s)


def _plan(
    job: Job,
    observed: Observed,
    desired: Desired,
    now: datetime.datetime,
    backoff: RestartBackoff,
) -> Plan:
    if job.status.phase in (JobPhase.CLEAN_UP, JobPhase.DONE, JobPhase.FAILED):
        return _after_end(job, observed, desired, now)
    if job.run_policy.suspended:
        return _suspend(job, observed, desired, now)
    if job.status.phase is JobPhase.RESTARTING:
        return _take_down(job, observed, desired, now, backoff)
    counted = restarts.counted(job.status, observed, backoff)
    next_status, notes = status.ongoing(job, observed, counted, now)
    found = verdict(job, observed, now)
    if found is None and not job.partial and whole_restarts.is_asked(job, observed):
        if whole_restarts.is_used_up(job):
            found = Verdict(limits.used_up(job, now))
        else:
            again, note = whole_restarts.begun(job, next_status, observed, now)
            return Plan(again, notes=(note,), wake_after_s=0)
    if found is None and (failure := limits.exceeded(job, next_status, observed, now)):
        found = Verdict(failure)
    if found is None and job.partial:
        # The pods there are may still end the job; none is created or deleted by a guess.
        deadline_s = limits.deadline_left_s(job, next_status, now)
        known = companions.changes(desired.companions, observed.companions).patched
        changed = CompanionChanges(patched=known)
        return Plan(next_status, notes=notes, companions=changed, wake_after_s=deadline_s)
    if found is None:
        kept = _keep_running(job, next_status, observed, now, backoff)
        passing = companions.changes(desired.companions, observed.companions, desired.lasting)
        held = desired.held
        deadline_s = limits.deadline_left_s(job, next_status, now)
        retry = gang_retry(job, observed, now)
        return attrs.evolve(
            kept,
            pods=() if held else tuple(_due(job, kept.pods, observed, desired, bool(passing))),
            notes=notes,
            wake_after_s=soonest(kept.wake_after_s, deadline_s, retry.next_s),
            deleted_services=_surplus_services(job, observed, desired.services),
            services=_services(job, observed, desired.services),
            released_pods=tuple(_released(job, observed)),
            companions=passing,
            # A write of the PodGroup for another reason does as well.
            gang_retry=GangRetry() if passing.patched else retry,
        )
    next_status, note = status.concluded(job, next_status, found, now)
    return attrs.evolve(_clean_up(job, next_status, observed, desired), notes=(note,))


def _after_end(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    if job.status.phase is JobPhase.CLEAN_UP:
        return _clean_up(job, job.status, observed, desired)
    if job.status.phase is JobPhase.FAILED:
        return _put_away(job, observed, desired, now)
    return _expire(job, now)


def _expire(job: Job, now: datetime.datetime) -> Plan:
    left_s = limits.ttl_left_s(job, now)
    if left_s is not None and left_s <= 0:
        return Plan(job.status, expired=True)
    return Plan(job.status, wake_after_s=left_s)


def _suspend(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    suspended, notes = status.suspended(job, now)
    return Plan(
        suspended,
        notes=notes,
        deleted_pods=tuple(pod for pod in observed.pods if not pod.metadata.terminating),
        deleted_services=tuple(observed.services.values()),
        companions=_at_rest(observed, desired),
    )


def _take_down(
    job: Job,
    observed: Observed,
    desired: Desired,
    now: datetime.datetime,
    backoff: RestartBackoff,
) -> Plan:
    """Remove all pods and services; what has failed stays until its time, to be read."""
    left_s = whole_restarts.left_s(job, backoff, now)
    services = tuple(observed.services.values())
    if not observed.pods and not services and left_s <= 0:
        return Plan(attrs.evolve(job.status, phase=JobPhase.CREATING), wake_after_s=0)
    stay = {job.child_name(replica) for replica in job.deciders.run} if left_s > 0 else set()
    leaving = (pod for pod in observed.pods if not pod.metadata.terminating)
    return Plan(
        job.status,
        deleted_pods=tuple(pod for pod in leaving if pod.metadata.name not in stay),
        deleted_services=services,
        kept_pods=tuple(kept_by_kueue(observed.pods)),
        companions=CompanionChanges(patched=_at_rest(observed, desired).patched),
        wake_after_s=left_s if left_s > 0 else None,
    )


def _due(
    job: Job,
    missing: Iterable[Replica],
    observed: Observed,
    desired: Desired,
    changing: bool,
) -> Iterator[Replica]:
    """Yield the replicas to create now; ``changing`` is whether companions are yet to be written.

    A launcher comes last. It reads the names of the others as it starts, and its role names their
    pods: all have to exist, since a name that is missing may be that of another pod.
    """
    for replica in missing:
        spec = job.spec_of(replica.type)
        if spec is None or not (spec.made_last or spec.waits_for_others):
            yield replica
        elif changing:
            continue
        elif desired.launches if spec.made_last else not _lacks_others(observed, replica):
            yield replica


def _lacks_others(observed: Observed, replica: Replica) -> bool:
    others = (o for o in observed.replicas if o.replica.type != replica.type)
    return any(one.situation is Situation.MISSING for one in others)


def _at_rest(observed: Observed, desired: Desired) -> CompanionChanges:
    """Delete what a job has only while it runs; what is retained grants access to no pod."""
    resting = companions.changes(desired.resting, observed.companions, desired.lasting)
    return attrs.evolve(resting, made=())


def _released(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the pods that have waited for all replicas of other types to run."""
    for spec in job.replica_specs:
        if not spec.waits_for_others:
            continue
        others = [o.situation for o in observed.replicas if o.replica.type != spec.type]
        if not all(s in (Situation.RUNNING, Situation.SUCCEEDED) for s in others):
            continue
        for one in observed.replicas:
            if one.replica.type == spec.type and one.pod is not None and one.pod.gated:
                yield one.pod


def _put_away(job: Job, observed: Observed, desired: Desired, now: datetime.datetime) -> Plan:
    """Remove what was created for a job that failed before any of it ran, whatever its policy."""
    return attrs.evolve(
        _expire(job, now),
        deleted_pods=tuple(pod for pod in observed.pods if not pod.metadata.terminating),
        deleted_services=tuple(observed.services.values()),
        companions=_at_rest(observed, desired),
    )


def _clean_up(job: Job, ended: JobStatus, observed: Observed, desired: Desired) -> Plan:
    """Remove what the policy says; once nothing of it is left to ask for, the job is done."""
    pods = tuple(cleanup.pods(job, observed))
    services = tuple(cleanup.services(job, observed))
    resting = _at_rest(observed, desired)
    if not pods and not services and not resting:
        ended = attrs.evolve(ended, phase=JobPhase.DONE)
    return Plan(ended, deleted_pods=pods, deleted_services=services, companions=resting)


def _keep_running(
    job: Job,
    next_status: JobStatus,
    observed: Observed,
    now: datetime.datetime,
    backoff: RestartBackoff,
) -> Plan:
    made, removed, waits = [], [], []
    for one in observed.replicas:
        if one.situation not in (Situation.MISSING, Situation.LOST):
            continue
        due = restarts.due(next_status.restarts.get(str(one.replica)), backoff)
        if one.situation is Situation.MISSING and _is_enrolled(job, one.replica):
            # Whoever has put it onto the roster has seen to that it is time.
            due = None
        wait_s = (due - now).total_seconds() if due else 0
        if wait_s > 0:
            # A lost pod stays until its replica's turn, so that its logs can be read.
            waits.append(wait_s)
        elif one.situation is Situation.MISSING:
            made.append(one.replica)
        elif one.pod is not None:
            removed.append(one.pod)
    replaced = [o.pod for o in observed.replicas if o.pod and o.situation is Situation.TERMINATING]
    leaving = [pod for pod in observed.surplus_pods if not pod.metadata.terminating]
    return Plan(
        next_status,
        deleted_pods=(*removed, *leaving, *outdated(job, observed)),
        pods=tuple(made),
        kept_pods=tuple(kept_by_kueue(replaced)),
        wake_after_s=min(waits, default=None),
    )


def _is_enrolled(job: Job, replica: Replica) -> bool:
    return job.status.roster is not None and replica.type == WORKER


def _services(
    job: Job, observed: Observed, with_service: Collection[Replica]
) -> tuple[Replica, ...]:
    return tuple(r for r in with_service if job.child_name(r) not in observed.services)


def _surplus_services(
    job: Job, observed: Observed, with_service: Collection[Replica]
) -> tuple[Service, ...]:
    wanted = {job.child_name(replica) for replica in with_service}
    return tuple(service for name, service in observed.services.items() if name not in wanted)
