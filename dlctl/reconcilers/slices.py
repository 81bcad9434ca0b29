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
SLICE: Final = 256
# Replicas with which a plan takes long enough to be noticed by others.
LARGE: Final = 500
# In the order in which they are carried out.
_PARTS: Final = (
    "deleted_pods", "forced_pods", "deleted_services", "services", "pods", "kept_pods",
    "released_pods",
)  # fmt: skip
# One at a time: each further thread would make the loop wait its turn longer.
_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plan")


def first_slice(plan: Plan, limit: int = SLICE) -> Plan:
    """Return a plan of the first steps of another one; the rest is for the next plans."""
    parts, left = {}, limit
    for name in _PARTS:
        parts[name] = getattr(plan, name)[:left]
        left -= len(parts[name])
    unfinished = any(len(part) < len(getattr(plan, name)) for name, part in parts.items())
    return attrs.evolve(plan, **parts, unfinished=unfinished)


async def decided(size: int, decide: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of a pure function of a job of this size, from a thread if it is large."""
    if size < LARGE:
        return decide(*args, **kwargs)
    call = partial(decide, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREAD, call)
