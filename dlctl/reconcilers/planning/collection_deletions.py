"""Plans that delete children by few requests."""

import attrs

from dlctl.api.meta import PODS, SERVICES, UID
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.job_status import JobPhase
from dlctl.informers.store import Store
from dlctl.reconcilers.children.collection_deletion import (
    MAX_COUNT,
    MAX_COUNT_OF_RESTART,
    collection_deletion,
)
from dlctl.reconcilers.plan import Plan


def with_collection_deletions(
    plan: Plan, owner: UID, pods: Store[Pod], services: Store[Service]
) -> Plan:
    """Return a plan that deletes the owner's pods or services by one request, where that is right.

    The stores must show all that the plan was made from.
    """
    limit = MAX_COUNT_OF_RESTART if plan.status.phase is JobPhase.RESTARTING else MAX_COUNT
    of_pods = collection_deletion(owner, PODS, plan.deleted_pods, pods, max_count=limit)
    of_services = collection_deletion(
        owner, SERVICES, plan.deleted_services, services, max_count=limit
    )
    return attrs.evolve(
        plan,
        deleted_pods=() if of_pods else plan.deleted_pods,
        deleted_services=() if of_services else plan.deleted_services,
        deleted_collections=tuple(filter(None, (of_pods, of_services))),
    )
