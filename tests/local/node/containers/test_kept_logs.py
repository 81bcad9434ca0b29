"""What remains of a pod on the node after its deletion: on disk, and of the times of its logs."""

import asyncio
from pathlib import Path

import pytest

from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.kubelet import KubeletOptions
from tests.local.node.harness import NodeHarness


@pytest.fixture
def paths(tmp_path: Path) -> PodPaths:
    paths = PodPaths.of(tmp_path, UID("uid-1"))
    paths.make()
    (paths.volumes / "secret").write_text("a secret of the pod")
    paths.hosts.write_text("127.0.0.1 localhost\n")
    paths.logs("main").mkdir(parents=True)
    (paths.logs("main") / "0.log").write_text("last words\n")
    return paths


def test_nothing_is_left_of_a_pod(paths: PodPaths) -> None:
    paths.remove(keep_logs=False)
    assert not paths.root.exists()


def test_kept_logs_are_all_that_is_left(paths: PodPaths) -> None:
    paths.remove(keep_logs=True)
    files = [path for path in paths.root.rglob("*") if path.is_file()]
    assert files == [paths.logs("main") / "0.log"]


@pytest.mark.parametrize("keep_logs", [True, False])
def test_pod_that_was_never_set_up_has_nothing_to_remove(tmp_path: Path, keep_logs: bool) -> None:
    PodPaths.of(tmp_path, UID("uid-2")).remove(keep_logs=keep_logs)
    assert list(tmp_path.iterdir()) == []


async def test_archived_log_of_a_deleted_pod_is_no_longer_observed(tmp_path: Path) -> None:
    options = KubeletOptions(network="host", log_dir=tmp_path / "logs")
    async with EmbeddedCluster(options) as cluster, Client(cluster.config()) as client:
        harness = NodeHarness(cluster, client)
        await harness.run("a", command=["echo", "done"])
        log = PodPaths.of(cluster.run_dir, UID(harness.uid("a"))).logs("main") / "0.log"
        times = cluster.node._log_times
        assert times.of(log).observed
        await client.delete(PODS, ObjectKey("default", "a"))
        await asyncio.wait(cluster.node._tasks)
        assert not times.of(log).observed
    assert (tmp_path / "logs" / "a" / "main-0.log").read_text() == "done\n"
