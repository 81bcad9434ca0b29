"""Clusters that continue with a directory, also after they were killed."""

import asyncio
import itertools
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dlctl.api.meta import CONFIG_MAPS, PODS, Object, ObjectKey
from dlctl.api.objects.pods import PodPhase
from dlctl.errors import ConfigError
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.kube.errors import ApiError, UnreachableError
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.data_directory import DataDirectory
from dlctl.local.node.kubelet import KubeletOptions

pytestmark = pytest.mark.slow
HOST = KubeletOptions(network="host")

KILLED = """
import asyncio, sys
from pathlib import Path
from typing import Any
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.data_directory import DataDirectory
from dlctl.local.node.kubelet import KubeletOptions

async def main(path):
    with DataDirectory.open(Path(path)) as data:
        async with EmbeddedCluster(KubeletOptions(network="host"), data=data) as cluster:
            print(cluster.kubeconfig_path, flush=True)
            await asyncio.get_running_loop().create_future()

asyncio.run(main(sys.argv[1]))
"""


def _modes(path: Path) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in path.rglob("*") if each.is_file()}


async def test_cluster_is_the_same_one_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with DataDirectory.open(path) as data:
        async with EmbeddedCluster(HOST, data=data) as cluster:
            first = cluster.config()
            async with Client(first) as client:
                created = await client.create(CONFIG_MAPS, "default", {"metadata": {"name": "a"}})
    assert path.stat().st_mode & 0o777 == 0o700
    assert _modes(path) == {0o600}
    with DataDirectory.open(path) as data:
        async with EmbeddedCluster(HOST, data=data):
            # With the address, the token and the authority of the first.
            async with Client(first) as client:
                found = await client.get(CONFIG_MAPS, ObjectKey("default", "a"), Object)
    assert found == created


async def test_log_of_a_former_cluster_is_said_to_be_gone(tmp_path: Path) -> None:
    container = {"name": "m", "image": "any", "command": ["echo", "hello"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    log = PODS.path("default", "pod", "log")
    with DataDirectory.open(tmp_path / "data") as data:
        async with EmbeddedCluster(HOST, data=data) as cluster, Client(cluster.config()) as client:
            await client.create(PODS, "default", {"metadata": {"name": "pod"}, "spec": pod})
            await _until(PodPhase.SUCCEEDED, client)
            assert await client.get_raw(log) == b"hello\n"
    with DataDirectory.open(tmp_path / "data") as data:
        async with EmbeddedCluster(HOST, data=data) as cluster, Client(cluster.config()) as client:
            with pytest.raises(ApiError, match='the log of pod "pod" is gone'):
                await client.get_raw(log)


async def test_write_that_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "data", dict[str, Object]()
    async with _killed_cluster(path) as (process, client):
        pod = {"containers": [{"name": "m", "image": "any", "command": ["sleep", "99"]}]}
        await client.create(PODS, "default", {"metadata": {"name": "pod"}, "spec": pod})
        await _until(PodPhase.RUNNING, client)
        with suppress(UnreachableError):
            for name in map(str, itertools.count()):
                acknowledged[name] = await client.create(
                    CONFIG_MAPS, "default", {"metadata": {"name": name}}
                )
                if name == "0":
                    asyncio.get_running_loop().call_later(0.5, process.kill)
    assert acknowledged
    with DataDirectory.open(path) as data:
        async with EmbeddedCluster(HOST, data=data) as cluster, Client(cluster.config()) as client:
            page = await client.list(CONFIG_MAPS, Object, namespace="default")
            found = {each.metadata.name: each for each in page.items}
            ended = await client.get(PODS, ObjectKey("default", "pod"), dict[str, Any])
            after = await client.create(CONFIG_MAPS, "default", {"metadata": {"name": "after"}})
    assert {name: found[name] for name in acknowledged} == acknowledged
    assert ended["status"]["phase"] == "Failed"
    newest = max(int(each.metadata.resource_version) for each in found.values())
    assert int(after.metadata.resource_version) > newest


@asynccontextmanager
async def _killed_cluster(path: Path) -> AsyncIterator[tuple[Process, Client]]:
    """Run a cluster in a process that is killed at the end of the block, or before."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, str(path)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(path.parent)},
    )
    try:
        assert process.stdout is not None
        kubeconfig = (await process.stdout.readline()).decode().strip()
        async with Client(await config.load(kubeconfig)) as client:
            yield process, client
    finally:
        # process.kill() polls first: the waiter of a process that has just ended gets no exit code.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL


async def _until(phase: PodPhase, client: Client) -> None:
    async with (
        asyncio.timeout(30),
        client.watch(PODS, namespace="default", resource_version="0") as lines,
    ):
        async for line in lines:
            if msgspec.json.decode(line)["object"]["status"].get("phase") == phase:
                return
    raise AssertionError("the watch has ended")


def test_directory_is_for_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        DataDirectory.open(tmp_path),
        pytest.raises(ConfigError, match="another `dlctl up` uses this directory: end it, or"),
        DataDirectory.open(tmp_path),
    ):
        pass


def test_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match="file/data: Not a directory; choose another --data"),
        DataDirectory.open(tmp_path / "file" / "data"),
    ):
        pass
