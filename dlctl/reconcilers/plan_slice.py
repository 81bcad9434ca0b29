"""Plans in portions, so that a large job does not hold up other jobs."""

from typing import Final

import attrs

from dlctl.reconcilers.plan import Plan

# Children that one reconciliation creates, changes or deletes.
MAX_CHANGES: Final = 256
# In the order in which they are applied.
_SLICED_FIELDS: Final = (
    "deleted_pods", "force_deleted_pods", "deleted_services", "services", "pods", "kueue_held_pods",
    "ungated_pods",
)  # fmt: skip


def first_slice(plan: Plan, limit: int = MAX_CHANGES) -> Plan:
    """Return a plan of the first steps of another one; the rest is for the next plans."""
    parts, remaining = {}, limit
    for name in _SLICED_FIELDS:
        parts[name] = getattr(plan, name)[:remaining]
        remaining -= len(parts[name])
    unfinished = any(len(part) < len(getattr(plan, name)) for name, part in parts.items())
    return attrs.evolve(plan, **parts, has_more=unfinished)
