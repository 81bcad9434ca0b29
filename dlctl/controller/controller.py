"""The controller: take a key, reconcile it, decide when to requeue it.

The one place where any exception of a reconcile is caught, logged and counted. The reconciler
decides what a key means and what to do for it.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

import attrs

from dlctl import logs
from dlctl.api.meta import ObjectKey
from dlctl.errors import DlctlError, TerminalError, describe
from dlctl.kube.flowcontrol.write_limiter import WriteFlow, write_flow
from dlctl.metrics import Metrics
from dlctl.workqueue.queue import QueueShutDown, WorkQueue

K = TypeVar("K")

logger = logging.getLogger(__name__)

# Reconciles are cheap; what they write is limited by the client. This bounds their memory.
MAX_CONCURRENT_RECONCILES: Final = 512
# A single conflict is common; this many in a row take over half a second.
_MIN_LOGGED_RETRIES: Final = 8
RESULTS: Final = ("error", "requeue_after", "requeue", "success")


class ReconcileTimeoutError(DlctlError):
    """A reconcile took too long and was cancelled."""


@attrs.frozen
class Result:
    """The request of a successful reconcile; by default, none.

    ``requeue_after_s`` resets the back-off and wins over ``requeue``, which continues it. Zero or
    less means at once. The key keeps its priority. ``is_waiting`` says that nothing was tried, and
    that the key will be added again: the back-off stays as it is.
    """

    requeue_after_s: float | None = None
    requeue: bool = False
    is_waiting: bool = False
    # Why ``requeue`` is set, if it should not last: logged once it has repeated.
    error: Exception | None = None


@attrs.define(eq=False)
class Controller(Generic[K]):
    """Reconciles the keys of one queue, each in a task of its own, until stopped.

    The writes of a reconcile are one flow to the client's limiter. An error requeues its key
    after a growing back-off; a :class:`TerminalError` does not requeue it. Cancelling :meth:`run`
    stops at once.
    """

    name: str
    queue: WorkQueue[K]
    reconcile: Callable[[K], Awaitable[Result]]
    metrics: Metrics
    max_concurrent_reconciles: int = MAX_CONCURRENT_RECONCILES
    # Timeout of one reconcile; None for none.
    timeout_s: float | None = None
    # No key is taken before these return: children would seem to be missing from a partial store.
    # An informer may take long: it waits until its CRD is installed.
    wait_synced: Sequence[Callable[[], Awaitable[object]]] = ()
    _dispatching: asyncio.Task[None] | None = attrs.field(init=False, default=None)
    _started: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        if self.max_concurrent_reconciles < 1:
            raise ValueError("expected max_concurrent_reconciles >= 1")
        # A rate needs a zero to start from.
        for result in RESULTS:
            self.metrics.controller_runtime_reconcile_total.labels(self.name, result)
        for counter in (
            self.metrics.controller_runtime_reconcile_errors_total,
            self.metrics.controller_runtime_terminal_reconcile_errors_total,
            self.metrics.controller_runtime_reconcile_panics_total,
            self.metrics.controller_runtime_reconcile_timeouts_total,
        ):
            counter.labels(self.name)
        self.metrics.controller_runtime_active_workers.labels(self.name)
        limit = self.metrics.controller_runtime_max_concurrent_reconciles.labels(self.name)
        limit.set(self.max_concurrent_reconciles)

    async def run(self) -> None:
        """Wait for the stores, then work until :meth:`stop`; a controller runs only once."""
        if self._started:
            raise RuntimeError(f"the controller {self.name} was already started")
        self._started = True
        for wait in self.wait_synced:
            await wait()
        logger.info("controller started", extra={logs.CONTROLLER: self.name})
        async with asyncio.TaskGroup() as group:
            self._dispatching = group.create_task(self._dispatch(), name=self.name)
        logger.info("controller stopped", extra={logs.CONTROLLER: self.name})

    async def stop(self, *, grace_s: float) -> None:
        """Take no more keys, finish the ready ones, and cancel the rest after the grace period."""
        self.queue.shut_down()
        if self._dispatching is None:
            return
        _, late = await asyncio.wait([self._dispatching], timeout=grace_s)
        if late:
            self._dispatching.cancel()
            logger.warning(
                "cancelled reconciles that did not finish in time",
                extra={logs.CONTROLLER: self.name},
            )
            # Not limited: only clean-up of cancelled code remains.
            await asyncio.wait(late)

    async def _dispatch(self) -> None:
        """Start a task for each key until the queue is shut down and empty; wait for them all."""
        slots = asyncio.Semaphore(self.max_concurrent_reconciles)
        async with asyncio.TaskGroup() as group:
            while True:
                await slots.acquire()
                try:
                    key = await self.queue.get()
                except QueueShutDown:
                    return
                task = group.create_task(self._process(key), name=f"{self.name} {key}")
                task.add_done_callback(partial(self._release, key, slots))
                # Reconciles that have nothing to wait for never yield: many tasks that become ready
                # at once would hold up everything else until the last has ended.
                await asyncio.sleep(0)

    def _release(self, key: K, slots: asyncio.Semaphore, _: "asyncio.Task[None]") -> None:
        # Not in the task, which may be cancelled before it begins.
        self.queue.done(key)
        slots.release()

    async def _process(self, key: K) -> None:
        active = self.metrics.controller_runtime_active_workers.labels(self.name)
        duration = self.metrics.controller_runtime_reconcile_time_seconds.labels(self.name)
        fields = {
            logs.CONTROLLER: self.name,
            logs.RECONCILE_ID: str(uuid.uuid4()),
            logs.OBJECT: str(key),
        }
        loop = asyncio.get_running_loop()
        started = loop.time()
        namespace = key.namespace if isinstance(key, ObjectKey) else ""
        write_flow.set(WriteFlow(started, partial(self.queue.is_queued, key), namespace))
        with logs.log_fields(**fields), active.track_inprogress():
            try:
                result = await self._reconcile_and_requeue(key)
            finally:
                duration.observe(loop.time() - started)
        self.metrics.controller_runtime_reconcile_total.labels(self.name, result).inc()

    async def _reconcile_and_requeue(self, key: K) -> str:
        """Reconcile and requeue; return the result label."""
        try:
            result = await self._reconcile_with_timeout(key)
        except TerminalError as error:
            # Neither requeued nor forgotten: if the key is added again, its back-off continues.
            self.metrics.controller_runtime_terminal_reconcile_errors_total.labels(self.name).inc()
            self.metrics.controller_runtime_reconcile_errors_total.labels(self.name).inc()
            _log_failure("reconcile failed, not retried", error)
            return "error"
        except Exception as error:  # noqa: BLE001 - one broken job must not stop the others
            self.metrics.controller_runtime_reconcile_errors_total.labels(self.name).inc()
            if not isinstance(error, DlctlError):
                self.metrics.controller_runtime_reconcile_panics_total.labels(self.name).inc()
            self.queue.add_rate_limited(key)
            _log_failure("reconcile failed", error, retries=self.queue.num_requeues(key))
            return "error"
        if result.requeue_after_s is not None:
            self.queue.forget(key)
            self.queue.add_after(key, result.requeue_after_s)
            return "requeue_after"
        if result.requeue:
            self.queue.add_rate_limited(key)
            retries = self.queue.num_requeues(key)
            if result.error is not None and _is_logged(retries):
                logger.warning(
                    "reconcile requeued repeatedly",
                    extra={logs.ERROR: describe(result.error), "retries": retries},
                )
            return "requeue"
        if not result.is_waiting:
            self.queue.forget(key)
        return "success"

    async def _reconcile_with_timeout(self, key: K) -> Result:
        timeout = asyncio.timeout(self.timeout_s)
        try:
            async with timeout:
                return await self.reconcile(key)
        except TimeoutError as error:
            if not timeout.expired():
                # A timeout of the reconciler's own: an error like any other.
                raise
            self.metrics.controller_runtime_reconcile_timeouts_total.labels(self.name).inc()
            message = f"the reconcile did not finish within {self.timeout_s:g} s"
            raise ReconcileTimeoutError(message) from error


def _is_logged(retries: int) -> bool:
    """Return whether to log a requeue: ever more rarely, as events requeue the key as well."""
    return retries >= _MIN_LOGGED_RETRIES and retries.bit_count() == 1


def _log_failure(message: str, error: Exception, **extra: object) -> None:
    # Errors that are expected have messages for the user; of the others, the place matters.
    trace = None if isinstance(error, DlctlError) else error
    logger.error(message, exc_info=trace, extra={logs.ERROR: describe(error), **extra})
