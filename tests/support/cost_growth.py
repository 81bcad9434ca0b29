"""How processor time grows with size: a ratio in one process, which a busy machine does not change.

The garbage collector has no part in it: whether it runs, and over how much, depends on the tests
that ran before.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# Another process takes its share of caches and cores: the quickest run is the least disturbed.
_REPEATS: Final = 5


def cost_growth(run: Callable[[int], object], *, small: int, factor: int = 4) -> float:
    """Return how many times longer ``run(factor * small)`` takes than ``run(small)``.

    It is about ``factor`` where time grows with size, and its square where it grows with the square
    of size; less where a bound applies or other work prevails.
    """
    times_s = {small: float("inf"), factor * small: float("inf")}
    for _ in range(_REPEATS):
        for size, quickest_s in times_s.items():
            times_s[size] = min(quickest_s, _time_s(run, size))
    return times_s[factor * small] / times_s[small]


def _time_s(run: Callable[[int], object], size: int) -> float:
    with no_garbage_collection():
        started = time.thread_time()
        run(size)
        return time.thread_time() - started


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector from running meanwhile."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
