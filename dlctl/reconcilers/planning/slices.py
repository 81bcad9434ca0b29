"""Slices of plans, so that a large job does not delay other jobs."""

from typing import Final

import attrs

from dlctl.reconcilers.plan import Plan

# Limit of children created, updated or deleted per reconciliation: between two slices the status
# shows what runs by then.
MAX_CHANGES: Final = 1024
# In order of application.
_SLICED_FIELDS: Final = (
    "deleted_pods", "force_deleted_pods", "deleted_services", "services", "pods", "kueue_held_pods",
    "ungated_pods",
)  # fmt: skip


def first_slice(plan: Plan, limit: int = MAX_CHANGES) -> Plan:
    """Return a plan with the first changes of another; later plans make the remaining ones."""
    parts, remaining = {}, limit
    for name in _SLICED_FIELDS:
        parts[name] = getattr(plan, name)[:remaining]
        remaining -= len(parts[name])
    unfinished = any(len(part) < len(getattr(plan, name)) for name, part in parts.items())
    launcher_job = plan.launcher_job
    if unfinished and launcher_job is not None and launcher_job.action.creates:
        # Its pod connects to all of the others.
        launcher_job = None
    return attrs.evolve(plan, **parts, launcher_job=launcher_job, has_more=unfinished)
