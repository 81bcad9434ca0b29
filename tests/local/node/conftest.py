"""A cluster for all tests of a module, since each takes most of a second to start."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dlctl.backoff import Backoff
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.agent.sandboxes import NetworkChoice
from dlctl.local.node.kubelet import KubeletOptions
from tests.local.node.harness import NodeHarness

# Otherwise pytest-asyncio creates a loop to restore, and never closes it.
asyncio.set_event_loop(None)

SHORT_CRASH_LOOP = Backoff(base_s=0.05, cap_s=0.1, reset_s=60.0)


async def _serve(
    network: NetworkChoice, images: Path, labs: "asyncio.Future[NodeHarness]", over: asyncio.Event
) -> None:
    program = images / "bin" / "entrypoint"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho entrypoint $*\n")
    program.chmod(0o755)
    options = KubeletOptions(
        images={"mapped": images}, network=network, crash_loop=SHORT_CRASH_LOOP
    )
    async with EmbeddedCluster(options) as cluster, Client(cluster.config()) as client:
        labs.set_result(NodeHarness(cluster, client))
        await over.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[NodeHarness]:
    """Run a cluster in its own task: a fixture starts in one task and ends in another."""
    network: NetworkChoice = getattr(request.module, "NETWORK", "auto")
    labs: asyncio.Future[NodeHarness] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()
    async with asyncio.timeout(20):
        serving = asyncio.ensure_future(_serve(network, tmp_path_factory.mktemp("env"), labs, over))
        await asyncio.wait((serving, labs), return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    yield labs.result()
    over.set()
    await serving
