"""The replicas of a running job: which pods and services to create, delete and ungate. Pure."""

import datetime
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import attrs

from dlctl.api.job import WORKER, Job, Replica
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobStatus
from dlctl.backoff import Backoff
from dlctl.reconcilers.children.avoided_nodes import pods_to_free
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.placement import outdated_pods
from dlctl.reconcilers.failures.drained_attempts import moving_events, pods_to_move
from dlctl.reconcilers.kueue.finalizer import held_by_kueue
from dlctl.reconcilers.lifecycle import job_restarts, replica_restarts
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.restart_attempts import pods_of_earlier_attempts
from dlctl.reconcilers.status.scale_downs import scaled_down_replicas

# It costs little to create and to delete this number.
_MAX_SERVICES_WITHOUT_DRY_RUN: Final = 64


def plan_replicas(
    job: Job,
    next_status: JobStatus,
    observed: Observed,
    now: datetime.datetime,
    backoff: Backoff,
) -> Plan:
    """Return which pods to delete, and which replicas get pods once nothing holds them back.

    Where the failure policy decides about it, they include a launcher whose pod is that of a Job.
    """
    created, deleted, requeue_after_s = _due_replicas(job, next_status, observed, now, backoff)
    replaced = [o.pod for o in observed.replicas if o.pod and o.state is ReplicaState.TERMINATING]
    leaving = [pod for pod in observed.surplus_pods if not pod.metadata.is_terminating]
    outdated = {pod.metadata.uid: pod for pod in outdated_pods(job, observed)}
    outdated |= {pod.metadata.uid: pod for pod in pods_to_free(job.status, observed.own_pods)}
    earlier = pods_of_earlier_attempts(job, observed.surplus_pods)
    moved = pods_to_move(attrs.evolve(job, status=next_status), observed, now)
    taken = {pod.metadata.name for pod in observed.surplus_pods}
    if taken:
        replaced += earlier
        created = [replica for replica in created if job.child_name(replica) not in taken]
    if created and not job_restarts.may_create_pods(job, observed):
        created, replaced = [], [*observed.own_pods]
    scaled_down = scaled_down_replicas(job, observed, created)
    return Plan(
        attrs.evolve(next_status, scaled_down=scaled_down),
        action_notes=moving_events(job, moved),
        deleted_pods=(*deleted, *leaving, *outdated.values(), *moved),
        outdated_pods=frozenset(pod.metadata.name for pod in (*earlier, *outdated.values())),
        pods=tuple(created),
        kueue_held_pods=tuple(held_by_kueue(replaced)),
        requeue_after_s=requeue_after_s,
    )


def _due_replicas(
    job: Job,
    next_status: JobStatus,
    observed: Observed,
    now: datetime.datetime,
    backoff: Backoff,
) -> tuple[list[Replica], list[Pod], float | None]:
    """Return the replicas to create, the failed pods to delete, and the seconds to the next."""
    created, deleted, waits = [], [], []
    for one in observed.replicas:
        if one.state not in (ReplicaState.MISSING, ReplicaState.FAILED_RETRYABLE):
            continue
        if not job.has_own_pod(one.replica) and not job.has_failure_policy:
            continue
        next_restart_at = replica_restarts.next_restart_at(
            next_status.restarts.get(str(one.replica)), backoff
        )
        if one.state is ReplicaState.MISSING and _is_elastic_worker(job, one.replica):
            # The membership plan adds such a worker only when it is due.
            next_restart_at = None
        wait_s = (next_restart_at - now).total_seconds() if next_restart_at else 0
        if wait_s > 0:
            # A failed pod stays until its replica's restart, so that its logs can be read.
            waits.append(wait_s)
        elif one.existing_pod is None:
            created.append(one.replica)
        else:
            deleted.append(one.existing_pod)
    return created, deleted, min(waits, default=None)


def replicas_to_create(
    job: Job,
    missing: Iterable[Replica],
    observed: Observed,
    desired: Desired,
    dependents_pending: bool,
) -> Iterator[Replica]:
    """Yield the replicas to create now; ``dependents_pending``: some dependents are not up to date.

    A launcher comes last. It reads the names of the others at start, and its role names their pods:
    all of them must exist, since another pod could get the name of a missing one.
    """
    for replica in missing:
        spec = job.replica_spec(replica.type)
        if spec is None or not (spec.create_last or spec.gated):
            yield replica
        elif dependents_pending:
            continue
        elif (
            desired.create_launcher if spec.create_last else not _others_missing(observed, replica)
        ):
            yield replica


def _others_missing(observed: Observed, replica: Replica) -> bool:
    others = (o for o in observed.replicas if o.replica.type != replica.type)
    return any(one.state is ReplicaState.MISSING for one in others)


def ungated_pods(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the gated pods whose job's other replicas all run."""
    for spec in job.replica_specs:
        if not spec.gated:
            continue
        others = [o.state for o in observed.replicas if o.replica.type != spec.type]
        if not all(s in (ReplicaState.RUNNING, ReplicaState.SUCCEEDED) for s in others):
            continue
        for one in observed.replicas:
            if one.replica.type == spec.type and one.pod is not None and one.pod.is_gated:
                yield one.pod


def _is_elastic_worker(job: Job, replica: Replica) -> bool:
    return job.status.membership is not None and replica.type == WORKER


def missing_services(
    job: Job, observed: Observed, replicas_with_service: Collection[Replica]
) -> tuple[Replica, ...]:
    """Return the replicas whose service does not exist."""
    return tuple(r for r in replicas_with_service if job.service_name(r) not in observed.services)


def pods_to_try(
    pods: Collection[Replica], services: Collection[Replica], observed: Observed
) -> tuple[Replica, ...]:
    """Return the replicas whose pods are tried before the services are created.

    They are the first of each type, if the job gets its first pods and many services: without them,
    a template or a quota that lets none of the pods in would cost thousands of services.
    """
    few = _MAX_SERVICES_WITHOUT_DRY_RUN
    if observed.pods_with_active_launchers or len(observed.services) > few or len(services) <= few:
        return ()
    first: dict[str, Replica] = {}
    for replica in pods:
        first.setdefault(replica.type, replica)
    return tuple(first.values())


def surplus_services(
    job: Job, observed: Observed, replicas_with_service: Collection[Replica]
) -> tuple[Service, ...]:
    """Return the services that no replica has."""
    wanted = {job.service_name(replica) for replica in replicas_with_service}
    return tuple(service for name, service in observed.services.items() if name not in wanted)


def outdated_services(job: Job, observed: Observed, desired: Desired) -> tuple[Service, ...]:
    """Return the service that all replicas share, if it publishes other addresses than desired."""
    service = observed.services.get(job.shared_service) if job.shares_service else None
    publishes = bool(service and service.spec.publish_not_ready_addresses)
    return (service,) if service and publishes != desired.publishes_not_ready_addresses else ()
