"""The init containers of a pod that keep running beside its containers."""

import asyncio

import attrs

from dlctl.local.node.containers.container_runner import ContainerRunner


@attrs.frozen(eq=False)
class Sidecars:
    """Runs sidecars as tasks of a group that the caller leaves once they have stopped."""

    group: asyncio.TaskGroup
    _started: list[tuple[ContainerRunner, asyncio.Task[None]]] = attrs.field(
        init=False, factory=list
    )

    def start(self, runner: ContainerRunner) -> None:
        """Run a sidecar; it may not have started on return."""
        task = self.group.create_task(runner.run(), name=f"sidecar {runner.container.name}")
        self._started.append((runner, task))

    async def stop(self, grace_s: float) -> None:
        """End the sidecars, the last one first; kill those that are left after that time."""
        async with asyncio.TaskGroup() as group:
            killing = group.create_task(self._kill_after(grace_s))
            for runner, task in reversed(self._started):
                runner.stop(kill=False)
                await asyncio.wait([task])
            killing.cancel()

    async def _kill_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for runner, _ in self._started:
            runner.stop(kill=True)
