"""Large jobs in portions, so that one of them holds up neither the event loop nor other jobs."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

import attrs

from dlctl.reconcilers.plan import Plan

P = ParamSpec("P")
R = TypeVar("R")

# Children that one reconciliation creates, changes or deletes.
MAX_CHANGES: Final = 256
# Replicas with which a plan takes long enough to be noticed by others.
LARGE_JOB: Final = 500
# In the order in which they are carried out.
_SLICED_FIELDS: Final = (
    "deleted_pods", "force_deleted_pods", "deleted_services", "services", "pods", "kueue_held_pods",
    "ungated_pods",
)  # fmt: skip
# One at a time: each further thread would make the loop wait its turn longer.
_EXECUTOR: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plan")


def first_slice(plan: Plan, limit: int = MAX_CHANGES) -> Plan:
    """Return a plan of the first steps of another one; the rest is for the next plans."""
    parts, remaining = {}, limit
    for name in _SLICED_FIELDS:
        parts[name] = getattr(plan, name)[:remaining]
        remaining -= len(parts[name])
    unfinished = any(len(part) < len(getattr(plan, name)) for name, part in parts.items())
    return attrs.evolve(plan, **parts, has_more=unfinished)


async def to_thread_if_large(
    size: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Return the result of a pure function of a job of this size, from a thread if it is large."""
    if size < LARGE_JOB:
        return function(*args, **kwargs)
    call = partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, call)
