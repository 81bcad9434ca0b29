"""What the controllers of all kinds share, on simulated loop time."""

import asyncio

import pytest
from aiohttp import web

from dlctl.api.meta import UID, ObjectKey, ObjectMeta
from dlctl.api.objects.nodes import Node
from dlctl.api.objects.scalers import Script
from dlctl.controller.background_tasks import BackgroundTasks
from dlctl.controller_builder import ControllerBuilder
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.metrics import Metrics
from dlctl.options import Options
from dlctl.reconcilers.membership.exec_tasks import LauncherContainer, RunScript
from tests.builders import KINDS
from tests.support.http_server import served
from tests.support.timing import LoopClock

pytestmark = pytest.mark.looptime(noop_cycles=8)


async def test_scripts_of_all_kinds_share_one_limit() -> None:
    running = peak = 0

    async def launcher(_: web.Request) -> web.Response:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(1)
        running -= 1
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}", launcher)
    async with served(app) as url, Client(ClusterConfig.with_token(url, "token")) as client:
        options = Options(max_concurrent_scaler_scripts=1)
        builder = ControllerBuilder(client, options, Metrics(), LoopClock())
        for kind in KINDS[:2]:
            builder.add_kind(kind)
        runnables = [one for one in builder.runnables if isinstance(one, BackgroundTasks)]
        for number, tasks in enumerate(runnables):
            pod = ObjectKey("team", f"linear-{number}-launcher")
            script = RunScript(LauncherContainer(pod, UID("1"), "mpi"), UID("2"), Script("x"), ())
            tasks.set_wanted(ObjectKey(pod.namespace, "linear"), [script])
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(tasks.run()) for tasks in runnables]
            await asyncio.sleep(10)
            for run in runs:
                run.cancel()
    assert (len(runnables), peak, running) == (2, 1, 0)


async def test_controllers_wait_until_all_stored_nodes_have_been_seen() -> None:
    async with Client(ClusterConfig.with_token("http://127.0.0.1:1", "token")) as client:
        builder = ControllerBuilder(client, Options(), Metrics(), LoopClock())
        builder.add_kind(KINDS[0])
        nodes = builder.informers.nodes
        assert nodes is not None
        builder.informers.node_tracker.is_synced = lambda: True
        for number in range(600):
            nodes.store.put(Node(metadata=ObjectMeta(name=f"node-{number}")))
        for register in builder.informers.handler_registrations:
            register()
        assert builder.informers.node_tracker.count < 600
        assert nodes.wait_caught_up in builder.controllers[0].wait_synced
        await nodes.wait_caught_up()
        assert builder.informers.node_tracker.count == 600
