"""Holds back children that others delete again and again. Pure."""

from collections.abc import Iterator

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job, Replica
from dlctl.api.meta import BATCH_JOBS, PODS, SERVICES, Resource
from dlctl.durations import shortest_wait
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.replicas import missing_services


def missing_children(
    job: Job, observed: Observed, desired: Desired
) -> Iterator[tuple[Resource, str]]:
    """Yield the resources and names of the children that a running job lacks."""
    for one in observed.replicas:
        if one.state is ReplicaState.MISSING and job.has_own_pod(one.replica):
            yield PODS, job.child_name(one.replica)
    if observed.launcher is not None and observed.launcher.batch_job is None:
        yield BATCH_JOBS, job.child_name(LAUNCHER_REPLICA)
    for replica in missing_services(job, observed, desired.services):
        yield SERVICES, job.service_name(replica)
    existing = {
        (resource, one.metadata.name)
        for resource, objects in observed.children.dependents.items()
        for one in objects
    }
    for dependent in (*desired.dependents, *desired.idle_dependents):
        if (dependent.resource, dependent.name) not in existing:
            yield dependent.resource, dependent.name


def without_held_children(plan: Plan, job: Job, observed: Observed) -> Plan:
    """Return a plan without the children that are not due, for which a later plan is needed."""
    waits = observed.children.recreation_waits
    if not waits:
        return plan

    def has_due_pod(replica: Replica) -> bool:
        return (PODS, job.child_name(replica)) not in waits

    created, write = plan.dependents.created, plan.launcher_job
    if write and write.action.creates and (BATCH_JOBS, job.child_name(LAUNCHER_REPLICA)) in waits:
        write = None
    return attrs.evolve(
        plan,
        pods=tuple(filter(has_due_pod, plan.pods)),
        dry_runs=tuple(filter(has_due_pod, plan.dry_runs)),
        services=tuple(r for r in plan.services if (SERVICES, job.service_name(r)) not in waits),
        dependents=attrs.evolve(
            plan.dependents,
            created=tuple(one for one in created if (one.resource, one.name) not in waits),
        ),
        launcher_job=write,
        requeue_after_s=shortest_wait(
            plan.requeue_after_s, *(wait.left_s for wait in waits.values())
        ),
    )
