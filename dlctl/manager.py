"""Composition root: runs the parts of the controller and owns their lifetimes.

Start: informers first; after leader election, the workers, each kind once its stores are synced.
Stop: workers first, while the informers still run, so that reconciles in progress finish with fresh
stores; then events, the lease, and the informers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

import attrs

from dlctl.clock import Clock, SystemClock
from dlctl.controller.runnables import keep_running
from dlctl.controller_builder import ControllerBuilder
from dlctl.dialects.kind import Kind
from dlctl.kube.client import Client
from dlctl.leaderelection.leadership import Leadership, NoLeaderElection
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.pauses import observe_gc_pauses, observe_loop_lag
from dlctl.tasks import unwrap_exception_groups

logger = logging.getLogger(__name__)


@attrs.define(eq=False)
class Manager:
    """One controller process: all kinds, under one leadership."""

    client: Client
    kinds: Iterable[Kind]
    options: Options = attrs.field(factory=Options)
    metrics: Metrics = attrs.field(factory=Metrics)
    clock: Clock = attrs.field(factory=SystemClock)
    leadership: Leadership = attrs.field(factory=NoLeaderElection)
    _parts: ControllerBuilder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._parts = ControllerBuilder(self.client, self.options, self.metrics, self.clock)
        for kind in self.kinds:
            self._parts.add_kind(kind)

    @property
    def synced(self) -> bool:
        """Return whether all readiness checks pass."""
        return all(synced() for synced in self.readiness_checks().values())

    def readiness_checks(self) -> dict[str, Callable[[], bool]]:
        """Return the readiness checks by name: every store, and the CRD of every kind.

        A kind that is not installed does not block readiness of the others.
        """
        stores = {
            informer.resource.group_resource: informer.is_synced_or_unserved
            for informer in self._parts.informers.required
        }
        definitions = {
            f"definition.{one.resource.group_resource}": one.is_current
            for one in self._parts.crd_checks
        }
        return {**stores, **definitions}

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, then finish reconciles in progress; cancelling stops at once.

        :raises LeaseLostError: if the lease is lost; reconciles in progress have been cancelled.
        """
        with observe_gc_pauses(self.metrics.dlctl_gc_pause_seconds), unwrap_exception_groups():
            async with asyncio.TaskGroup() as background:
                lag = self.metrics.dlctl_event_loop_lag_seconds
                tasks = [background.create_task(observe_loop_lag(lag), name="loop lag")]
                informers = self._parts.informers
                tasks += [
                    background.create_task(informer.run(), name=f"informer {informer.resource}")
                    for informer in (*informers.required, *informers.optional)
                ]
                async with self.leadership.leading(stop) as leading:
                    if leading:
                        with self.metrics.mpi_operator_is_leader.track_inprogress():
                            await self._run_leader(stop)
                for task in tasks:
                    task.cancel()

    async def _run_leader(self, stop: asyncio.Event) -> None:
        """Run everything that writes until ``stop`` is set; nothing of it is left on return."""
        async with asyncio.TaskGroup() as group:
            recording = group.create_task(self._parts.recorder.run(), name="events")
            tasks = [
                group.create_task(keep_running(runnable, self.metrics), name="background work")
                for runnable in self._parts.runnables
            ]
            stopped_at = await self._run_controllers(stop)
            logger.info("workers stopped")
            for task in tasks:
                task.cancel()
            await self._flush_events(recording, stopped_at)

    async def _flush_events(self, recording: asyncio.Task[None], stopped_at: float) -> None:
        """Send the remaining events within the rest of the grace period."""
        self._parts.recorder.close()
        left_s = (
            stopped_at
            + self.options.graceful_shutdown_timeout_s
            - asyncio.get_running_loop().time()
        )
        await asyncio.wait([recording], timeout=max(0.0, left_s))
        recording.cancel()

    async def _run_controllers(self, stop: asyncio.Event) -> float:
        """Reconcile until ``stop`` is set; return the loop time at which that happened."""
        for subscribe in self._parts.informers.handler_registrations:
            subscribe()
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(controller.run(), name=f"controller {controller.name}")
                for controller in self._parts.controllers
            ]
            await stop.wait()
            stopped_at = asyncio.get_running_loop().time()
            logger.info("stopping")
            async with asyncio.TaskGroup() as stopping:
                for controller in self._parts.controllers:
                    stopping.create_task(
                        controller.stop(grace_s=self.options.graceful_shutdown_timeout_s)
                    )
            for task in running:
                # A controller whose stores never synced is still waiting for them.
                task.cancel()
        return stopped_at
