"""Planning of large jobs in a thread, so that none of them blocks the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# From this number of replicas on, planning takes noticeably long.
LARGE_JOB: Final = 500
# A single thread: more of them would slow down the event loop.
_EXECUTOR: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plan")


async def to_thread_if_large(
    size: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Return the result of a pure function; for a large ``size``, run it in a thread."""
    if size < LARGE_JOB:
        return function(*args, **kwargs)
    call = partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, call)
