"""Reading and planning of large jobs in a thread, so that none of them blocks the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final, ParamSpec, TypeVar

import attrs
import msgspec

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import Job
from dlctl.controller.fair_semaphore import FairSemaphore
from dlctl.reconcilers.observe import Observed, ObservedReplica

P = ParamSpec("P")
R = TypeVar("R")

# From this number of replicas on, planning takes noticeably long.
LARGE_JOB: Final = 500
# Reading the output of one that failed takes as long as planning this many others.
_REPLICAS_PER_OUTPUT: Final = 100
# A log is longer than a termination message.
_OUTPUTS_PER_LOG: Final = 5
# Jobs with more replicas make more writes than others wait for.
_FEW_REPLICAS: Final = 64
# Each look at a job costs a millisecond or two.
_BETWEEN_LOOKS_S: Final = 0.02
_MIN_SLOT_RETRY_S: Final = 0.5
_MAX_SLOT_RETRY_S: Final = 10.0
# Reading this part of a spec takes as long as planning one replica.
_BYTES_PER_REPLICA: Final = 64


@attrs.frozen(eq=False)
class SharedThread:
    """A thread that computes one thing at a time, for each namespace in turn.

    More threads would slow down the event loop.
    """

    name: str
    _turns: FairSemaphore = attrs.field(init=False, factory=partial(FairSemaphore, 1))
    _executor: ThreadPoolExecutor = attrs.field(init=False)

    @_executor.default
    def _one_thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=self.name)

    async def run(self, namespace: str, function: Callable[[], R]) -> R:
        """Return the result of a pure function for a job of a namespace."""
        async with self._turns.slot(namespace):
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)


@attrs.define(eq=False)
class LargeJobSlots:
    """The slots for reconciles of jobs with many replicas, each of which may take minutes, and MB.

    Large jobs of a namespace hold up neither small ones nor those of other namespaces.
    """

    _slots: FairSemaphore = attrs.field(factory=partial(FairSemaphore, 64, extra=64))
    # When the last job without a slot looks again, on the loop's clock.
    _last_look_s: float = attrs.field(init=False, default=0.0)

    def slot_if_large(self, namespace: str, replicas: int) -> AbstractContextManager[bool]:
        """Return a context for the reconcile of a job; it yields whether there is a slot now."""
        return nullcontext(True) if replicas <= _FEW_REPLICAS else self._slots.slot_now(namespace)

    def retry_delay_s(self) -> float:
        """Return when a job without a slot looks again: the more wait, the later."""
        now_s = asyncio.get_running_loop().time()
        look_s = max(now_s + _MIN_SLOT_RETRY_S, self._last_look_s + _BETWEEN_LOOKS_S)
        self._last_look_s = min(look_s, now_s + _MAX_SLOT_RETRY_S)
        return self._last_look_s - now_s


LARGE_JOB_SLOTS: Final = LargeJobSlots()
_PLANNER: Final = SharedThread("plan")
# Of its own: a spec takes longer than a plan, and plans of other jobs must not wait for it.
_READER: Final = SharedThread("read")


def reading_size(*specs: msgspec.Raw | None) -> int:
    """Return how large reading specs is, in replicas."""
    return sum(len(bytes(spec)) for spec in specs if spec is not None) // _BYTES_PER_REPLICA


def planning_size(job: Job, observed: Observed) -> int:
    """Return how large planning is, in replicas."""
    failed = sum(1 for one in observed.replicas if one.restarts_in_place or _has_failed(one))
    outputs = failed + len(observed.children.logs) * _OUTPUTS_PER_LOG
    return max(job.total_replicas, len(observed.pods), outputs * _REPLICAS_PER_OUTPUT)


def _has_failed(one: ObservedReplica) -> bool:
    return one.termination is not None and one.termination.exit_class is not ExitClass.SUCCESS


async def to_thread_if_large(
    namespace: str, size: int, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Return the result of a pure function; for a large ``size``, run it in a thread."""
    if size < LARGE_JOB:
        return function(*args, **kwargs)
    return await _PLANNER.run(namespace, partial(function, *args, **kwargs))


async def read_in_thread(namespace: str, function: Callable[[], R]) -> R:
    """Return the result of a pure function that reads a large spec."""
    return await _READER.run(namespace, function)
