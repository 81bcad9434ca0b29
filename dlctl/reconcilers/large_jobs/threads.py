"""Threads for what takes long to read or to plan, so that it does not block the event loop.

Costs are estimates, in units of the time that it takes to plan one replica.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import Job
from dlctl.controller.shared_thread import SharedThread
from dlctl.reconcilers.content_errors import Step, wrap_content_errors
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica

R = TypeVar("R")

# Planning this many replicas takes noticeably long.
MIN_COST_FOR_THREAD: Final = 500
# Reading the output of one that failed takes as long as planning this many others.
_REPLICAS_PER_OUTPUT: Final = 100
# A log is longer than a termination message.
_OUTPUTS_PER_LOG: Final = 5
# Reading this part of a spec takes as long as planning one replica.
_BYTES_PER_REPLICA: Final = 64

_PLANNER: Final = SharedThread("plan")
# Of its own: a spec takes longer than a plan, and plans of other jobs must not wait for it.
_READER: Final = SharedThread("read")


def reading_cost(*specs: msgspec.Raw | None) -> int:
    """Return the cost of reading specs."""
    return sum(len(bytes(spec)) for spec in specs if spec is not None) // _BYTES_PER_REPLICA


def planning_cost(job: Job, observed: Observed) -> int:
    """Return the cost of planning a job."""
    failed = sum(1 for one in observed.replicas if one.restarts_in_place or _has_failed(one))
    outputs = failed + len(observed.children.logs) * _OUTPUTS_PER_LOG
    return max(job.total_replicas, len(observed.own_pods), outputs * _REPLICAS_PER_OUTPUT)


def _has_failed(one: ObservedReplica) -> bool:
    return one.termination is not None and one.termination.exit_class is not ExitClass.SUCCESS


async def run_step(step: Step, namespace: str, cost: int, function: Callable[[], R]) -> R:
    """Return the result of a pure step of a reconcile; run it in a thread if its cost is high.

    :raises ContentError: if the step fails; an exception of the thread itself is none of a job's.
    """

    def call() -> R:
        with wrap_content_errors(step):
            return function()

    return call() if cost < MIN_COST_FOR_THREAD else await _PLANNER.run(namespace, call)


async def read_in_thread(namespace: str, function: Callable[[], R]) -> R:
    """Return the result of a pure function that reads a spec at a high cost."""
    return await _READER.run(namespace, function)
