"""The objects of one namespace as watches show them, and when each job's were last written."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Self

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import (
    BATCH_JOBS,
    CONFIG_MAPS,
    EVENTS,
    PODS,
    SECRETS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.kube.client import Client
from dlctl.kube.errors import NotFoundError

MPIJOBS: Final = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
FOLLOWED: Final = (MPIJOBS, SERVICES, CONFIG_MAPS, SECRETS, PODS, BATCH_JOBS, EVENTS)
JOB_LABEL: Final = "training.kubeflow.org/job-name"
_QUIET_S: Final = 2.0
_PATIENCE_S: Final = 40.0
_POLL_S: Final = 0.1


@attrs.define(eq=False)
class Observed:
    """All that is in a namespace, by the resource's kind and the name."""

    client: Client
    namespace: str
    objects: dict[tuple[str, str], JSON] = attrs.field(factory=dict)
    _written_at: dict[str, float] = attrs.field(factory=dict)

    @classmethod
    @asynccontextmanager
    async def of(
        cls, client: Client, namespace: str, resources: Sequence[Resource]
    ) -> AsyncIterator[Self]:
        """Yield the namespace while its objects are watched."""
        observed = cls(client, namespace)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(observed._watch(resource)) for resource in resources]
            if VOLCANO_POD_GROUPS in resources:
                tasks.append(group.create_task(observed._admit_gangs()))
            yield observed
            for task in tasks:
                task.cancel()

    def of_job(self, job: str) -> list[JSON]:
        """Return the job and all objects that belong to it, by their kinds and names.

        Those with random names come in the order in which they were created.
        """
        return sorted((o for o in self.objects.values() if _job_of(o) == job), key=_order)

    def pods(self, job: str, role: str) -> list[JSON]:
        label = "training.kubeflow.org/job-role"
        pods = [obj for obj in self.of_job(job) if obj["kind"] == "Pod"]
        return [pod for pod in pods if pod["metadata"]["labels"].get(label) == role]

    async def settled(self, job: str) -> None:
        """Wait until nothing of a job has been written for some seconds."""
        since = time.monotonic()
        while time.monotonic() - max(since, self._written_at.get(job, 0.0)) < _QUIET_S:
            if time.monotonic() - since > _PATIENCE_S:
                return
            await asyncio.sleep(_POLL_S)

    async def until(self, probe: Callable[[], bool], within_s: float = _PATIENCE_S) -> bool:
        """Wait for something; return whether it came about in time."""
        deadline = time.monotonic() + within_s
        while not probe():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def create(self, obj: JSON) -> None:
        resource = next(one for one in FOLLOWED if one.kind == obj["kind"])
        await self.client.create(resource, self.namespace, obj)

    async def patch(self, resource: Resource, name: str, body: JSON, subresource: str = "") -> None:
        await self.client.patch(resource, self._key(name), body, subresource=subresource)

    async def delete(self, resource: Resource, name: str) -> None:
        await self.client.delete(resource, self._key(name), propagation="Background")

    def _key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def _watch(self, resource: Resource) -> None:
        page = await self.client.list(resource, JSON, namespace=self.namespace)
        watch = self.client.watch(
            resource,
            namespace=self.namespace,
            resource_version=page.resource_version,
            bookmarks=True,
        )
        async with watch as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] != "BOOKMARK":
                    self._note(event["type"], {**event["object"], "kind": resource.kind})
        raise ConnectionError(f"the watch on {resource.plural} has ended")

    async def _admit_gangs(self) -> None:
        """Let each gang have room, as Volcano would."""
        admitted = {"status": {"phase": "Inqueue"}}
        while True:
            groups = [obj for (kind, _), obj in self.objects.items() if kind == "PodGroup"]
            for name in [obj["metadata"]["name"] for obj in groups if "status" not in obj]:
                with suppress(NotFoundError):
                    await self.patch(VOLCANO_POD_GROUPS, name, admitted, "status")
            await asyncio.sleep(_POLL_S)

    def _note(self, change: str, obj: JSON) -> None:
        self._written_at[_job_of(obj)] = time.monotonic()
        key = (obj["kind"], obj["metadata"]["name"])
        if change == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj


def _order(obj: JSON) -> tuple[str, str]:
    meta = obj["metadata"]
    return obj["kind"], meta["creationTimestamp"] if "generateName" in meta else meta["name"]


def _job_of(obj: JSON) -> str:
    """Return the name of the job that an object belongs to, or an empty string."""
    meta = obj["metadata"]
    if obj["kind"] == "Event":
        about = obj["involvedObject"]
        return about["name"] if about["kind"] == "MPIJob" else ""
    for owner in meta.get("ownerReferences", ()):
        if owner["kind"] == "MPIJob":
            return str(owner["name"])
    return str(meta.get("labels", {}).get(JOB_LABEL, meta["name"]))
