"""Waits for the garbage collector of a server."""

import asyncio

from tests.local.apiserver.raw_client import RawClient


async def settled(api: RawClient) -> None:
    """Run the garbage collector until it is idle."""
    for _ in range(20):
        await asyncio.sleep(0)
    await api.get("/api/v1/namespaces")
