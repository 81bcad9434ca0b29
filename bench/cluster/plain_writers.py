"""The limit that an operator is held to: clients that only create, or also delete, objects."""

import asyncio
import time

from bench.cluster.api_server import METADATA_ONLY, ApiServer
from bench.cluster.concurrency import WRITERS, each
from bench.cluster.manifests import RUNNING_PODS, plain_pod, plain_service
from bench.cluster.namespaces import namespace
from bench.cluster.seen import Seen

_POLL_S = 0.05


async def create_s(server: ApiServer, replicas: int, *, writers: int = WRITERS) -> float:
    """Return the seconds in which they create the pods and services of this many replicas."""
    async with namespace(server) as name:
        return await fill_s(server, name, replicas, writers=writers)


async def run_s(server: ApiServer, replicas: int) -> tuple[float, float | None]:
    """Return the same, and the seconds until all of these pods run; None beyond the limit."""
    async with namespace(server) as name:
        running = Seen()
        path = f"/api/v1/namespaces/{name}/{RUNNING_PODS}"
        async with server.watching(path, running.add, METADATA_ONLY):
            start = time.perf_counter()
            created_s = await fill_s(server, name, replicas)
            return created_s, await running.complete_s(replicas, start)


async def fill_s(server: ApiServer, name: str, replicas: int, *, writers: int = WRITERS) -> float:
    """Like :func:`create_s`, in a namespace that keeps them."""
    base = f"/api/v1/namespaces/{name}"

    async def write(number: int) -> None:
        await server.post(f"{base}/pods", plain_pod(number))
        await server.post(f"{base}/services", plain_service(number))

    start = time.perf_counter()
    await each(range(replicas), write, at_once=writers)
    return time.perf_counter() - start


async def replace_s(server: ApiServer, pods: int) -> float:
    """Return the seconds in which they delete this many running pods and create them again.

    Each has a service, as a rank has. They are not waited for: kwok deletes some by their names.
    """
    async with namespace(server) as name:
        base = f"/api/v1/namespaces/{name}/pods"

        async def create(number: int) -> None:
            await server.post(base, plain_pod(number))

        async def delete(number: int) -> None:
            await server.delete(f"{base}/plain-{number}")

        await fill_s(server, name, pods)
        running = f"/api/v1/namespaces/{name}/{RUNNING_PODS}"
        while len(await server.metadata(running)) < pods:  # noqa: ASYNC110 - not in the clock.
            await asyncio.sleep(_POLL_S)
        start = time.perf_counter()
        await each(range(pods), delete)
        while await server.metadata(base):  # noqa: ASYNC110 - the last ones are gone at once.
            await asyncio.sleep(_POLL_S)
        await each(range(pods), create)
        return time.perf_counter() - start
