"""A client of a real API server: plain HTTP, so that nothing of dlctl is in the clock."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Self

import aiohttp
import attrs

from dlctl.api.json_types import JSON

# Only the metadata: decoding whole pods would take the time of the operator's core.
_METADATA: Final = "application/json;as={};g=meta.k8s.io;v=v1"
METADATA_ONLY: Final = _METADATA.format("PartialObjectMetadata")
_METADATA_LIST: Final = _METADATA.format("PartialObjectMetadataList")
_MERGE_PATCH: Final = "application/merge-patch+json"
_THROTTLED: Final = 429


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
        timeout = aiohttp.ClientTimeout(total=300)
        async with aiohttp.ClientSession(
            headers=headers, connector=connector, timeout=timeout
        ) as session:
            yield cls(cluster["server"], session)

    async def post(self, path: str, body: JSON) -> JSON:
        """Create an object; waits and tries again as long as the server says 429."""
        while True:
            async with self.session.post(self.url + path, json=body) as response:
                if response.status == _THROTTLED:
                    await response.read()
                    await asyncio.sleep(float(response.headers.get("Retry-After", 1)))
                    continue
                answer: JSON = await response.json()
                if response.status >= 300:
                    raise RuntimeError(f"{path}: {response.status} {answer.get('message')}")
                return answer

    async def patch_status(self, path: str, status: JSON) -> None:
        async with self.session.patch(
            f"{self.url}{path}/status",
            data=json.dumps({"status": status}),
            headers={"Content-Type": _MERGE_PATCH},
        ) as response:
            if response.status >= 300:
                raise RuntimeError(f"{path}: {response.status} {await response.text()}")

    async def get(self, path: str) -> tuple[int, JSON]:
        async with self.session.get(self.url + path) as response:
            return response.status, await response.json()

    async def text(self, path: str) -> str:
        async with self.session.get(self.url + path) as response:
            return await response.text()

    async def metadata(self, path: str) -> list[JSON]:
        """List the metadata of the objects of a collection."""
        headers = {"Accept": _METADATA_LIST}
        async with self.session.get(self.url + path, headers=headers) as response:
            return [item["metadata"] for item in (await response.json())["items"] or ()]

    async def delete(self, path: str) -> None:
        async with self.session.delete(self.url + path) as response:
            await response.read()

    @asynccontextmanager
    async def watching(
        self, path: str, on_object: Callable[[JSON], None], accept: str = METADATA_ONLY
    ) -> AsyncIterator[None]:
        """Call back with each object that appears or changes during the block."""
        mark = "&" if "?" in path else "?"
        _, listed = await self.get(f"{path}{mark}limit=1")
        version = listed["metadata"]["resourceVersion"]
        url = f"{self.url}{path}{mark}watch=1&resourceVersion="
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(url, version, on_object, accept))
            yield
            watch.cancel()

    async def _watch(
        self, url: str, version: str, on_object: Callable[[JSON], None], accept: str
    ) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        # The server ends it when a definition changes, which may take seconds to be complete.
        while True:
            async with self.session.get(
                url + version, timeout=timeout, headers={"Accept": accept}, read_bufsize=1 << 22
            ) as response:
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the watch failed: {url}: {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] in ("ADDED", "MODIFIED"):
                        on_object(event["object"])
