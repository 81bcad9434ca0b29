"""Loads for one operator: plain writers, one large job, many small ones.

Talks plain HTTP to the API server, so that nothing of dlctl is in the clock.
"""

import asyncio
import json
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Self

import aiohttp
import attrs

JSON = dict[str, Any]
# Concurrent requests of the plain writers.
WRITERS: Final = 32
LIMIT_S: Final = 600.0
_POLL_S: Final = 0.1
_JOBS: Final = "/apis/kubeflow.org/v1"
# Only the metadata: decoding whole pods would take the time of the operator's core.
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@attrs.frozen
class Times:
    """Seconds since the first job was sent; None if the limit was exceeded."""

    pods_s: float | None
    services_s: float | None
    running_s: float | None

    @property
    def children_s(self) -> float | None:
        """The time until all pods and services exist."""
        if self.pods_s is None or self.services_s is None:
            return None
        return max(self.pods_s, self.services_s)


@attrs.frozen
class ApiServer:
    """An API server, and a session with it."""

    url: str
    session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def of(cls, config: JSON) -> AsyncIterator[Self]:
        """Yield the server of a kubeconfig with a token."""
        cluster = config["clusters"][0]["cluster"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        connector = aiohttp.TCPConnector(ssl=context, limit=200)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            yield cls(cluster["server"], session)

    async def post(self, path: str, body: JSON) -> JSON:
        async with self.session.post(self.url + path, json=body) as response:
            answer: JSON = await response.json()
            if response.status >= 300:
                raise RuntimeError(f"{path}: {response.status} {answer.get('message')}")
            return answer

    async def get(self, path: str) -> tuple[int, JSON]:
        async with self.session.get(self.url + path) as response:
            return response.status, await response.json()

    async def delete(self, path: str) -> None:
        async with self.session.delete(self.url + path) as response:
            await response.read()

    async def watch(self, path: str, accept: str, on_object: Callable[[JSON], None]) -> None:
        """Call back with each object that appears or changes, until cancelled."""
        url = f"{self.url}{path}?watch=1&resourceVersion="
        _, listed = await self.get(path + "?limit=1")
        url += listed["metadata"]["resourceVersion"]
        timeout = aiohttp.ClientTimeout(total=None)
        headers = {"Accept": accept}
        async with self.session.get(
            url, timeout=timeout, headers=headers, read_bufsize=1 << 22
        ) as response:
            async for line in response.content:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    on_object(event["object"])


@asynccontextmanager
async def namespace(server: ApiServer) -> AsyncIterator[str]:
    """Create a namespace that accepts pods; empty and delete it afterwards."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    await server.post("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    while (await server.get(account))[0] != 200:  # noqa: ASYNC110 - there is no event to wait for.
        await asyncio.sleep(_POLL_S)
    try:
        yield name
    finally:
        await server.delete(f"{_JOBS}/namespaces/{name}/pytorchjobs")
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                await _empty(server, f"/api/v1/namespaces/{name}")
        await server.delete(f"/api/v1/namespaces/{name}")


async def _empty(server: ApiServer, base: str) -> None:
    """Delete all pods and services, many at a time: the namespace controller takes minutes."""
    for resource in ("pods", "services"):
        while items := (await server.get(f"{base}/{resource}"))[1]["items"]:
            names = iter([item["metadata"]["name"] for item in items])

            async def delete(resource: str, names: Iterator[str]) -> None:
                for name in names:
                    await server.delete(f"{base}/{resource}/{name}?gracePeriodSeconds=0")

            await _all([partial(delete, resource, names)] * WRITERS)


async def plain_writes_s(server: ApiServer, replicas: int) -> float:
    """Return the seconds in which plain writers create the children of this many replicas."""
    async with namespace(server) as name:
        base = f"/api/v1/namespaces/{name}"
        numbers = iter(range(replicas))

        async def write() -> None:
            for number in numbers:
                await server.post(f"{base}/pods", _plain_pod(number))
                await server.post(f"{base}/services", _plain_service(number))

        start = time.perf_counter()
        await _all([write] * WRITERS)
        return time.perf_counter() - start


async def jobs_s(server: ApiServer, jobs: int, replicas: int) -> tuple[Times, str]:
    """Submit PyTorchJobs and return the times, and the namespace that the audit log names."""
    async with namespace(server) as name:
        pods, services, running = (_Seen(n) for n in (jobs * replicas, jobs * replicas, jobs))
        watches = [
            (f"/api/v1/namespaces/{name}/pods", _METADATA_ONLY, pods.add),
            (f"/api/v1/namespaces/{name}/services", _METADATA_ONLY, services.add),
            (f"{_JOBS}/namespaces/{name}/pytorchjobs", "application/json", running.add_running),
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(server.watch(*watch)) for watch in watches]
            await asyncio.sleep(0.5)
            start = time.perf_counter()
            numbers = iter(range(jobs))

            async def submit() -> None:
                for number in numbers:
                    path = f"{_JOBS}/namespaces/{name}/pytorchjobs"
                    await server.post(path, _job(f"job-{number}", replicas))

            await _all([submit] * min(WRITERS, jobs))
            seen = [await one.complete_s(start) for one in (pods, services, running)]
            # The operator may still write: that counts as well.
            await asyncio.sleep(2.0)
            for task in tasks:
                task.cancel()
        return Times(*seen), name


class _Seen:
    """The objects of one kind that have been seen, and when the last one was."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._names: set[str] = set()
        self._complete = asyncio.Event()
        self._at = 0.0

    def add(self, obj: JSON) -> None:
        self._names.add(obj["metadata"]["name"])
        if len(self._names) == self._wanted and not self._complete.is_set():
            self._at = time.perf_counter()
            self._complete.set()

    def add_running(self, job: JSON) -> None:
        conditions = job.get("status", {}).get("conditions") or []
        if any(c["type"] == "Running" and c["status"] == "True" for c in conditions):
            self.add(job)

    async def complete_s(self, start: float) -> float | None:
        try:
            async with asyncio.timeout(max(0.0, start + LIMIT_S - time.perf_counter())):
                await self._complete.wait()
        except TimeoutError:
            return None
        return self._at - start


async def _all(workers: Sequence[Callable[[], Awaitable[None]]]) -> None:
    await asyncio.gather(*(worker() for worker in workers))


def _plain_pod(number: int) -> JSON:
    labels = {"app": "bench", "number": str(number)}
    return {"metadata": {"name": f"plain-{number}", "labels": labels}, "spec": _pod_spec("plain")}


def _plain_service(number: int) -> JSON:
    spec = {"clusterIP": "None", "selector": {"number": str(number)}, "ports": [{"port": 23456}]}
    return {"metadata": {"name": f"plain-{number}"}, "spec": spec}


def _pod_spec(container: str) -> JSON:
    return {"containers": [{"name": container, "image": "busybox", "command": ["sleep", "36000"]}]}


def _job(name: str, replicas: int) -> JSON:
    replica = {"restartPolicy": "OnFailure", "template": {"spec": _pod_spec("pytorch")}}
    specs = {"Master": {"replicas": 1, **replica}}
    if replicas > 1:
        specs["Worker"] = {"replicas": replicas - 1, **replica}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs},
    }
