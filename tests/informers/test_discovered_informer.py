"""When an informer of a resource that may not be served looks for it, on simulated loop time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import pytest
from aiohttp import web

from dlctl.api.objects.workloads import WORKLOAD_VERSIONS, WORKLOADS, Workload
from dlctl.informers.discovered_informer import DISCOVERY_INTERVAL_S, DiscoveredInformer
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from tests.informers.scripted import Handler, error_response, listed, pod, watched
from tests.support.http_server import served
from tests.support.timing import LoopClock

pytestmark = pytest.mark.looptime(noop_cycles=8)
GROUP = f"/apis/{WORKLOADS.group}"
UNAVAILABLE = error_response(503, "ServiceUnavailable")
NOT_SERVED = error_response(404, "NotFound")


async def crash(request: web.Request) -> web.StreamResponse:
    """Respond with what no API server sends."""
    return web.Response(text="<html>")


async def in_the_newest_version(request: web.Request) -> web.StreamResponse:
    return web.json_response({"kind": "APIGroup", "versions": [{"version": WORKLOAD_VERSIONS[0]}]})


@attrs.define(eq=False)
class Discovery:
    """The running informer, and the times at which it asked for the versions of the group."""

    informer: DiscoveredInformer[Workload]
    asked_at: list[float] = attrs.field(factory=list)

    @property
    def names(self) -> list[str]:
        return [one.metadata.name for one in self.informer.store]


@asynccontextmanager
async def discovering(*responses: Handler) -> AsyncIterator[Discovery]:
    """Run an informer against a server that sends these responses, the last one repeatedly."""
    left = list(responses)
    found: Discovery

    async def group(request: web.Request) -> web.StreamResponse:
        found.asked_at.append(asyncio.get_running_loop().time())
        return await (left.pop(0) if len(left) > 1 else left[0])(request)

    async def workloads(request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return await error_response(422, "Invalid")(request)
        if "watch" in request.query:
            return await watched(then="hold")(request)
        return await listed(pod("first"), kind="WorkloadList")(request)

    app = web.Application()
    app.router.add_get(GROUP, group)
    app.router.add_get(f"{GROUP}/{WORKLOAD_VERSIONS[0]}/{WORKLOADS.plural}", workloads)
    async with served(app) as url, Client(ClusterConfig.with_token(url, "token")) as client:
        informer = DiscoveredInformer(
            client, WORKLOADS, WORKLOAD_VERSIONS, Workload, clock=LoopClock()
        )
        found = Discovery(informer)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(informer.run())
            yield found
            running.cancel()


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([UNAVAILABLE] * 3, id="a server that starts"),
        pytest.param([crash], id="not an API server"),
    ],
)
async def test_resource_is_watched_soon_after_its_discovery_has_failed(
    failures: Sequence[Handler],
) -> None:
    async with discovering(*failures, in_the_newest_version) as discovery:
        await asyncio.sleep(30)
        assert discovery.names == ["first"]


async def test_resource_that_is_not_served_is_looked_for_every_few_minutes() -> None:
    async with discovering(NOT_SERVED) as discovery:
        await asyncio.sleep(3 * DISCOVERY_INTERVAL_S + 10)
        assert len(discovery.asked_at) == 4


async def test_failing_discovery_is_repeated_less_and_less_often() -> None:
    async with discovering(UNAVAILABLE) as discovery:
        await asyncio.sleep(3600)
        assert 60 <= len(discovery.asked_at) <= 130


async def test_watched_resource_stays_watched_while_its_discovery_fails() -> None:
    async with discovering(in_the_newest_version, UNAVAILABLE) as discovery:
        await asyncio.sleep(3 * DISCOVERY_INTERVAL_S)
        assert discovery.names == ["first"]


async def test_objects_are_gone_once_the_resource_is_not_served_any_more() -> None:
    async with discovering(in_the_newest_version, UNAVAILABLE, NOT_SERVED) as discovery:
        await asyncio.sleep(10)
        assert discovery.names == ["first"]
        await asyncio.sleep(2 * DISCOVERY_INTERVAL_S)
        assert discovery.names == []
