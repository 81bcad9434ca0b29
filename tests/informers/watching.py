"""An informer under test, with a back-off that tests read."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from dlctl.api.meta import PODS
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.informers.reflector_backoff import ReflectorBackoff
from dlctl.kube.client import Client
from dlctl.metrics import Metrics
from tests.informers.scripted import ScriptedServer
from tests.support.timing import ManualClock


@attrs.define
class CountedBackoff(ReflectorBackoff):
    """Pauses that take no time: their requested and their computed lengths are recorded."""

    pauses: list[float] = attrs.field(factory=list)
    lengths_s: list[float] = attrs.field(factory=list)

    async def pause(self, at_least_s: float = 0.0, *, is_down: bool = False) -> None:
        self.pauses.append(at_least_s)
        self.lengths_s.append(self.next_s(is_down=is_down))
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Run the loop until a condition holds; fail soon if it never does."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - it may be about anything
            await asyncio.sleep(0)


@attrs.define
class Watching:
    """A running informer and all its notifications."""

    informer: Informer[Pod]
    backoff: CountedBackoff
    metrics: Metrics
    changes: list[Change[Pod]]

    @property
    def names(self) -> list[str]:
        return sorted(obj.metadata.name for obj in self.informer.store)

    @property
    def version(self) -> str:
        return self.informer.store.resource_version

    @property
    def versions(self) -> list[tuple[str, str | None, str | None]]:
        """Return name, old and new version of each change."""
        return [
            (
                change.key.name,
                change.old.metadata.resource_version if change.old else None,
                change.new.metadata.resource_version if change.new else None,
            )
            for change in self.changes
        ]

    def sample(self, metric: str, /, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(metric, labels) or 0.0


@asynccontextmanager
async def watching(
    server: ScriptedServer, *, synced: bool = True, clock: ManualClock | None = None, **options: Any
) -> AsyncIterator[Watching]:
    """Run an informer for the duration of the block, and wait for its first list."""
    backoff, metrics = CountedBackoff(clock or ManualClock()), Metrics()
    async with Client(server.config, metrics=metrics) as client:
        options = {
            "clock": clock or ManualClock(),
            "backoff": backoff,
            "metrics": metrics,
            **options,
        }
        informer = Informer(client, PODS, Pod, **options)
        watch = Watching(informer, backoff, metrics, [])
        informer.add_handler(watch.changes.append)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            try:
                if synced:
                    async with asyncio.timeout(5):
                        await informer.wait_synced()
                yield watch
            finally:
                running.cancel()
