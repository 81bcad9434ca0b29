"""Runs faults on one embedded cluster, several at a time, and collects their verdicts."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey, Resource
from dlctl.api.status.verdict import Confidence
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane, embedded_control_plane
from dlctl.dialects.kinds import kind_of_api_version
from tests.builders import KINDS
from tests.faults.fault import NAMESPACE, Fault, Scene

# The cores are few, and several programs import PyTorch.
AT_ONCE: Final = 6
LIMIT_S: Final = 60.0
# What ends this much later may still have the cause.
LATE_S: Final = 1.5


@asynccontextmanager
async def cluster(images: Mapping[str, Path]) -> AsyncIterator[EmbeddedControlPlane]:
    async with embedded_control_plane(KINDS, ClusterOptions(images)) as running:
        yield running


async def verdicts(running: EmbeddedControlPlane, faults: Sequence[Fault]) -> dict[str, JSON]:
    """Return the first verdict on each fault by its name; empty for one that is not judged."""
    free = asyncio.Semaphore(AT_ONCE)

    async def judged(fault: Fault) -> JSON:
        async with free:
            return await _verdict(running, fault)

    async with asyncio.TaskGroup() as group:
        tasks = {fault.name: group.create_task(judged(fault)) for fault in faults}
    return {name: task.result() for name, task in tasks.items()}


async def until_ended(running: EmbeddedControlPlane, job: JSON) -> JSON:
    """Create a job, and return its status once it has ended."""
    watched = await WatchedJob.created(running, job)
    return await watched.until(lambda status: status if _has_ended(status) else {})


def _has_ended(status: JSON) -> bool:
    ended = ("Succeeded", "Failed")
    return any(
        one["type"] in ended and one["status"] == "True" for one in status.get("conditions") or ()
    )


async def _verdict(running: EmbeddedControlPlane, fault: Fault) -> JSON:
    job = copy.deepcopy(fault.job)
    job["metadata"]["name"] = fault.name
    watched = await WatchedJob.created(running, job)
    async with asyncio.TaskGroup() as group:
        scene = Scene(running.client, fault.name)
        injecting = group.create_task(fault.inject(scene)) if fault.inject else None
        found = await watched.verdict()
        if injecting:
            injecting.cancel()
    await running.client.delete(watched.resource, watched.key)
    return found


@attrs.define(eq=False)
class WatchedJob:
    """A job whose status is read whenever anything has changed."""

    running: EmbeddedControlPlane
    resource: Resource
    key: ObjectKey
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self.running.cluster.server.storage.observers.append(lambda _: self._changed.set())

    @classmethod
    async def created(cls, running: EmbeddedControlPlane, job: JSON) -> Self:
        kind = kind_of_api_version(KINDS, job["apiVersion"], job["kind"])
        assert kind is not None
        await running.client.create(kind.resource, NAMESPACE, job)
        return cls(running, kind.resource, ObjectKey(NAMESPACE, job["metadata"]["name"]))

    async def until(self, probe: Callable[[JSON], JSON]) -> JSON:
        """Return what a probe finds in the status; empty if it finds nothing in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                while not (found := probe(self._status())):
                    self._changed.clear()
                    await self._changed.wait()
                return found
        return {}

    async def verdict(self) -> JSON:
        """Return the attempt that a failure has ended, with what late ends have proved."""
        found = await self.until(judged)
        if found.get("confidence") != Confidence.LOW:
            return found
        await asyncio.sleep(LATE_S)
        return judged(self._status())

    def _status(self) -> JSON:
        stored = self.running.cluster.server.storage.get(self.resource, self.key)
        job: JSON = stored.decoded(self.resource) if stored else {}
        status: JSON = job.get("status") or {}
        return status


def judged(status: JSON) -> JSON:
    attempts: list[JSON] = status.get("dlctl", status).get("attempts") or []
    return next((each for each in attempts if "cause" in each), {})
