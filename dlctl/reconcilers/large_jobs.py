"""Planning of large jobs in a thread, so that one of them does not hold up the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Replicas with which a plan takes long enough to be noticed by others.
LARGE_JOB: Final = 500
# One at a time: each further thread would make the loop wait its turn longer.
_EXECUTOR: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plan")


async def to_thread_if_large(
    size: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Return the result of a pure function of a job of this size, from a thread if it is large."""
    if size < LARGE_JOB:
        return function(*args, **kwargs)
    call = partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, call)
