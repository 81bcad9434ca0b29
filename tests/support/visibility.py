"""Kueue's visibility API for tests: a small server that knows who waits in which LocalQueue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs
from aiohttp import web

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey
from dlctl.api.objects.workloads import LOCAL_QUEUES
from dlctl.kube.config import ClusterConfig
from tests.support.http_server import served

_GROUP: Final = f"/apis/{LOCAL_QUEUES.group}"
_QUEUE: Final = "/{version}/namespaces/{namespace}/localqueues/{name}/pendingworkloads"


def summary(namespace: str, positions: dict[str, int]) -> JSON:
    """Return the Workloads of a LocalQueue with their positions, counted from 0."""
    items = [
        {
            "metadata": {"name": name, "namespace": namespace},
            "priority": 0,
            "localQueueName": "team-a",
            "positionInClusterQueue": position,
            "positionInLocalQueue": index,
        }
        for index, (name, position) in enumerate(positions.items())
    ]
    return {"kind": "PendingWorkloadsSummary", "metadata": {}, "items": items}


@attrs.define(eq=False)
class VisibilityApi:
    """What the server says, and the requests that it has seen."""

    versions: tuple[str, ...] = ("v1beta2", "v1beta1")
    positions: dict[ObjectKey, dict[str, int]] = attrs.field(factory=dict)
    # Codes of errors by LocalQueue, those that never answer, and whether none answers.
    errors: dict[ObjectKey, int] = attrs.field(factory=dict)
    hanging: set[ObjectKey] = attrs.field(factory=set)
    is_hanging: bool = False
    # Whether it sends more Workloads than it was asked for.
    ignores_limit: bool = False
    requests: list[str] = attrs.field(factory=list)
    cancelled_count: int = 0

    async def group(self, _: web.Request) -> web.Response:
        if not self.versions:
            return web.Response(text="404 page not found\n", status=404)
        versions = [{"version": version} for version in self.versions]
        return web.json_response({"kind": "APIGroup", "versions": versions})

    async def queue(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        key = ObjectKey(request.match_info["namespace"], request.match_info["name"])
        if self.is_hanging or key in self.hanging:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled_count += 1
        code = self.errors.get(key, 200 if key in self.positions else 404)
        if code != 200 or request.match_info["version"] not in self.versions:
            return web.json_response({"kind": "Status", "code": code}, status=code)
        known = list(self.positions[key].items())
        limit = None if self.ignores_limit else int(request.query["limit"])
        return web.json_response(summary(key.namespace, dict(known[:limit])))


@asynccontextmanager
async def serve_visibility(api: VisibilityApi) -> AsyncIterator[ClusterConfig]:
    """Serve the API for the duration of the block; yield the configuration of its clients."""
    app = web.Application()
    app.router.add_get(_GROUP, api.group)
    app.router.add_get(_GROUP + _QUEUE, api.queue)
    async with served(app) as url:
        yield ClusterConfig.with_token(url, "token")
