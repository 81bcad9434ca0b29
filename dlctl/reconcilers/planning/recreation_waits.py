"""Holds back children other than pods that are deleted again and again. Pure."""

from collections.abc import Callable, Iterable, Mapping

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job
from dlctl.api.meta import BATCH_JOBS, SERVICES, Resource
from dlctl.durations import shortest_wait
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.recreation_backoff import RecreationWait

# Returns those names of a resource whose next children may not be created yet.
Waits = Callable[[Resource, Iterable[str]], Mapping[str, RecreationWait]]


def with_recreation_waits(plan: Plan, job: Job, waits: Waits) -> Plan:
    """Return a plan without the children that are not due, for which a later plan is needed.

    Pods are not among them: :func:`plan_replicas` knows their waits, and so does the status.
    """
    services = waits(SERVICES, map(job.service_name, plan.services))
    created = plan.dependents.created
    dependents = {
        (one.resource, name): found
        for one in created
        for name, found in waits(one.resource, [one.name]).items()
    }
    write = plan.launcher_job
    is_created = write is not None and write.action.creates
    launcher = waits(BATCH_JOBS, [job.child_name(LAUNCHER_REPLICA)] if is_created else [])
    held = [*services.values(), *dependents.values(), *launcher.values()]
    if not held:
        return plan
    return attrs.evolve(
        plan,
        services=tuple(one for one in plan.services if job.service_name(one) not in services),
        dependents=attrs.evolve(
            plan.dependents,
            created=tuple(one for one in created if (one.resource, one.name) not in dependents),
        ),
        launcher_job=None if launcher else write,
        requeue_after_s=shortest_wait(plan.requeue_after_s, min(one.left_s for one in held)),
    )
