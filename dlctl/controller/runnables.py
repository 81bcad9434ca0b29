"""Runnables: background work beside the controllers, which nothing that an object contains can end.

One that fails is logged, counted and run again after a growing pause, as a reconcile is.
"""

import asyncio
import logging
import random
from typing import Final, Protocol

from dlctl import logs
from dlctl.backoff import Backoff
from dlctl.metrics import Metrics
from dlctl.tasks import unwrap_exception_groups

logger = logging.getLogger(__name__)

BACKOFF: Final = Backoff(base_s=1.0, cap_s=60.0, jitter=0.5, reset_s=600.0)


class Runnable(Protocol):
    """Background work of the controllers; it runs while this process leads."""

    async def run(self) -> None:
        """Run until cancelled; called again after an error."""


async def keep_running(runnable: Runnable, metrics: Metrics) -> None:
    """Run a runnable until cancelled, and again after each error."""
    name = type(runnable).__name__
    # A rate needs a zero to start from.
    errors = metrics.controller_runtime_reconcile_errors_total.labels(name)
    panics = metrics.controller_runtime_reconcile_panics_total.labels(name)
    loop, task, failures = asyncio.get_running_loop(), asyncio.current_task(), 0
    while True:
        started = loop.time()
        try:
            with unwrap_exception_groups():
                return await runnable.run()
        except Exception as error:
            errors.inc()
            # Those that are expected are handled inside, so each raises an alert.
            panics.inc()
            logger.exception("background work failed", extra={logs.CONTROLLER: name})
            if task is not None and task.cancelling():
                # A task group loses the cancellation over an error of one of its tasks.
                raise asyncio.CancelledError from error
        failures = 1 if loop.time() - started > BACKOFF.reset_s else failures + 1
        await asyncio.sleep(BACKOFF.delay_s(failures, random.random()))
