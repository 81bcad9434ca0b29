"""A namespace for each measurement, emptied afterwards."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from bench.cluster.api_server import ApiServer
from bench.cluster.concurrency import each
from bench.cluster.manifests import JOB_COLLECTIONS

LIMIT_S: Final = 600.0
_POLL_S: Final = 0.1


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
        for collection in JOB_COLLECTIONS:
            await server.delete(collection.format(name))
        path = f"/api/v1/namespaces/{name}"
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                await _empty(server, path)
        await server.delete(path)
        # The control plane deletes endpoints and events, too, and would do so while the next
        # measurement runs.
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                while (await server.get(path))[0] != 404:  # noqa: ASYNC110 - as above.
                    await asyncio.sleep(_POLL_S)


async def _empty(server: ApiServer, base: str) -> None:
    """Delete all pods and services, many at a time: the namespace controller takes minutes."""
    for resource in ("pods", "services"):
        while found := await server.metadata(f"{base}/{resource}"):
            paths = iter([f"{base}/{resource}/{meta['name']}" for meta in found])

            async def delete(path: str) -> None:
                await server.delete(f"{path}?gracePeriodSeconds=0")

            await each(paths, delete)
