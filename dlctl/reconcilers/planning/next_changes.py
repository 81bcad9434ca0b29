"""The last steps of a plan: what of it is applied now, and by how many requests. Pure.

The rest is planned again later, from newer stores.
"""

import attrs

from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod, Service
from dlctl.informers.store import Store
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.collection_deletions import with_collection_deletions
from dlctl.reconcilers.planning.slices import first_slice
from dlctl.reconcilers.status.status_debounce import debounce_counts, defer_first_status


@attrs.frozen(kw_only=True)
class StatusTiming:
    """When a job's statuses are written, as far as its status and plan do not show it."""

    job_age_s: float
    since_write_s: float
    # True once per job, if a status is known to be preserved by the server.
    may_defer_first: bool


def next_changes(
    job: Job, plan: Plan, timing: StatusTiming, pods: Store[Pod], services: Store[Service]
) -> Plan:
    """Return the part of a plan that is applied now; the stores must show what it was made from."""
    if timing.may_defer_first:
        plan = defer_first_status(job, plan, timing.job_age_s)
    plan = debounce_counts(job, plan, timing.since_write_s)
    return first_slice(with_collection_deletions(plan, job.uid, pods, services))
