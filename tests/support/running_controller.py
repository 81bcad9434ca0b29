"""A controller that a test runs: what it is doing, and the ways to end it."""

import asyncio

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.dialects.kind import Kind
from dlctl.manager import Manager


@attrs.define(eq=False)
class RunningController:
    """A running controller, and the ways to end it."""

    task: asyncio.Task[None]
    manager: Manager
    stop_asked: asyncio.Event
    namespace: str

    async def kill(self) -> None:
        """Cancel it at once: it does not see the response it was waiting for."""
        self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()

    async def stop(self) -> None:
        """Stop it as SIGTERM does."""
        self.stop_asked.set()
        await self.task

    @property
    def is_busy(self) -> bool:
        """Return whether it reads its first lists, or reconciles something."""
        if self.task.done():
            return False
        queues = [controller.queue for controller in self.manager._parts.controllers]
        at_work = any(len(queue) or queue._processing for queue in queues)
        return at_work or not self.manager.synced

    def reconcile(self, kind: Kind, name: str = "linear") -> None:
        """Make it reconcile a job that has not changed."""
        for controller in self.manager._parts.controllers:
            if controller.name == kind.resource.group_resource:
                controller.queue.add(ObjectKey(self.namespace, name))
