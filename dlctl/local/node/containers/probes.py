"""Startup, readiness and liveness probes of a container that runs, as in the kubelet."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.api_types import Container
from dlctl.local.node.containers.handler_runner import HandlerRunner
from dlctl.local.node.handler_types import Probe
from dlctl.local.node.status import ContainerRecord


@attrs.define
class ProbeOutcome:
    """The outcome of a probe: it changes after a number of equal results."""

    probe: Probe
    _last: bool | None = attrs.field(init=False, default=None)
    _count: int = attrs.field(init=False, default=0)

    def record(self, *, succeeded: bool) -> bool | None:
        """Record a result; return the outcome, or None while there are too few equal results."""
        self._count = self._count + 1 if succeeded is self._last else 1
        self._last = succeeded
        needed = self.probe.success_threshold if succeeded else self.probe.failure_threshold
        return succeeded if self._count >= needed else None


@attrs.frozen
class ContainerProbes:
    """Probes a container during one run of its program, and keeps its record."""

    container: Container
    handler_runner: HandlerRunner
    record: ContainerRecord
    changed: Callable[[], None]
    warn: Callable[[str, str], None]
    # Ends the program, which is then restarted if the pod's policy says so.
    kill: Callable[[Probe], Awaitable[None]]

    async def run(self) -> None:
        """Probe until cancelled; return if there is nothing to probe, or no longer."""
        startup = self.container.startup_probe
        if startup is not None:
            if not await anext(self._outcomes(startup, "Startup")):
                await self.kill(startup)
                return
            self.record.started = True
            self.changed()
        async with asyncio.TaskGroup() as group:
            if readiness := self.container.readiness_probe:
                group.create_task(self._watch_readiness(readiness))
            if liveness := self.container.liveness_probe:
                group.create_task(self._watch_liveness(liveness))

    async def _watch_readiness(self, probe: Probe) -> None:
        async for passing in self._outcomes(probe, "Readiness"):
            if passing is not self.record.passing:
                self.record.passing = passing
                self.changed()

    async def _watch_liveness(self, probe: Probe) -> None:
        async for alive in self._outcomes(probe, "Liveness"):
            if not alive:
                await self.kill(probe)
                return

    async def _outcomes(self, probe: Probe, kind: str) -> AsyncIterator[bool]:
        outcome = ProbeOutcome(probe)
        if probe.grpc is not None:
            text = "gRPC probes are not supported on this node: it counts as passing"
            self.warn("Unsupported", f"{kind} probe of container {self.container.name}: {text}")
        await asyncio.sleep(probe.initial_delay_seconds)
        while True:
            try:
                await self.handler_runner.perform(probe, probe.timeout_seconds)
            except DlctlError as failure:
                self.warn("Unhealthy", f"{kind} probe failed: {failure}")
                result = outcome.record(succeeded=False)
            else:
                result = outcome.record(succeeded=True)
            if result is not None:
                yield result
            await asyncio.sleep(probe.period_seconds)
