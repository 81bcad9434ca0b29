"""Pods on a node with two GPUs, which a stand-in for nvidia-smi lists."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dlctl.api.meta import ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.kubelet import KubeletOptions
from dlctl.local.node.node_object import NODE_NAME
from tests.local.node.builders import make_container, scheduled
from tests.local.node.harness import NodeHarness

GPU = "nvidia.com/gpu"
NODE = ObjectKey("", NODE_NAME)
SHOW = "echo devices=$CUDA_VISIBLE_DEVICES."


@pytest.fixture
def _two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, GPU-aa'\necho '1, GPU-bb'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest_asyncio.fixture
async def node(_two_gpus: None) -> AsyncIterator[NodeHarness]:
    options = KubeletOptions(network="host", node_labels={"accelerator": "a100"})
    async with EmbeddedCluster(options) as cluster, Client(cluster.config()) as client:
        yield NodeHarness(cluster, client)


def containers(count: int, command: str) -> list[dict[str, Any]]:
    resources = {"limits": {GPU: str(count)}} if count else {}
    return [make_container(command=["sh", "-c", command], resources=resources)]


async def test_gpus_are_resources_of_the_node_and_pods_see_their_own(node: NodeHarness) -> None:
    found = await node.client.get(NODES, NODE, dict[str, Any])
    assert found["status"]["capacity"][GPU] == "2"
    assert found["metadata"]["labels"]["accelerator"] == "a100"
    await node.run("both", containers=containers(2, SHOW))
    assert await node.log("both") == "devices=0,1.\n"
    await node.run("none", containers=containers(0, SHOW))
    assert await node.log("none") == "devices=.\n"


async def test_pods_wait_for_their_turn(node: NodeHarness) -> None:
    wait = f"{SHOW} trap exit TERM; while :; do sleep 0.02; done"
    for name in ("first", "second"):
        await node.start(name, containers=containers(1, wait))
        await node.until(name, lambda status: status["phase"] == "Running")
    await node.start("third", containers=containers(1, SHOW))
    status = await node.until("third", lambda status: scheduled(status).get("status") == "False")
    condition = scheduled(status)
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")
    await node.warning("The pod requests 1, and 2 of 2 are in use.")
    await node.delete("second", grace_period_s=0)
    await node.finished("third")
    assert await node.log("third") == "devices=1.\n"


async def test_pod_that_needs_more_than_there_are_never_starts(node: NodeHarness) -> None:
    await node.start("greedy", containers=containers(3, SHOW))
    status = await node.until("greedy", lambda status: scheduled(status).get("status") == "False")
    assert "requests 3, and this machine has 2" in scheduled(status)["message"]
    # It does not hold up those that fit.
    await node.run("modest", containers=containers(1, SHOW))
    await node.delete("greedy")
    await node.gone("greedy")


async def test_pod_is_scheduled_once_the_node_has_its_label(node: NodeHarness) -> None:
    await node.run("fits", nodeSelector={"accelerator": "a100"})
    await node.start("picky", nodeSelector={"disk": "ssd"})
    await node.warning("didn't match Pod's node affinity/selector. --node-label disk=ssd")
    await node.client.patch(NODES, NODE, {"metadata": {"labels": {"disk": "ssd"}}})
    assert (await node.finished("picky"))["phase"] == "Succeeded"


@pytest.mark.usefixtures("_two_gpus")
async def test_ignored_gpus_are_neither_counted_nor_hidden() -> None:
    options = KubeletOptions(network="host", hand_out_gpus=False)
    async with EmbeddedCluster(options) as cluster, Client(cluster.config()) as client:
        harness = NodeHarness(cluster, client)
        await harness.run("many", containers=containers(8, "echo ${CUDA_VISIBLE_DEVICES-unset}"))
        assert await harness.log("many") == "unset\n"
        found = await client.get(NODES, NODE, dict[str, Any])
        assert GPU not in found["status"]["capacity"]
