"""Reports the status of one pod to the API server: each change, and its end as kubelets do."""

import asyncio

import attrs

from dlctl.api.json_types import JSON
from dlctl.clock import Clock
from dlctl.local.node.api_types import NodePod
from dlctl.local.node.pod_api import PodApi
from dlctl.local.node.status import PodState, status


@attrs.define(eq=False)
class PodStatusReporter:
    """Writes the status of a pod whenever it differs from the last one that was written."""

    # The newest version of the object.
    pod: NodePod
    state: PodState
    pod_api: PodApi
    clock: Clock
    # True if nothing is reported any more, such as if the object is gone.
    is_closed: bool = attrs.field(init=False, default=False)
    _is_finished: bool = attrs.field(init=False, default=False)
    _changed: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _reported: JSON = attrs.field(init=False, factory=dict)

    def notify(self) -> None:
        """Report the state soon: it has changed."""
        self._changed.set()

    def finish(self) -> None:
        """Report the end: nothing of the pod is left but its object; :meth:`run` returns."""
        self._is_finished = True
        self._changed.set()

    def close(self) -> None:
        """Report nothing more: the object is gone, or the server ends with the node."""
        self.is_closed = True

    async def run(self) -> None:
        """Report changes until the end is reported."""
        over = False
        while not over:
            await self._changed.wait()
            self._changed.clear()
            # Read first, so that the last report includes everything.
            over = self._is_finished
            if over and self.pod.metadata.is_terminating:
                # A deleted pod reports its end in one step.
                self.state.finished = True
            await self._report()
        if not self.state.finished:
            # First the terminated containers, then the phase.
            self.state.finished = True
            await self._report()

    async def _report(self) -> None:
        if not self.is_closed:
            conditions = self._reported.get("conditions", ())
            wire = status(self.pod, self.state, conditions, self.clock.now())
            if wire != self._reported:
                self._reported = wire
                if not await self.pod_api.write_status(self.pod, wire):
                    # Not reset otherwise: it may have been closed meanwhile.
                    self.is_closed = True
