"""The cluster as a whole: access, clean-up, error messages."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from dlctl.api.meta import PODS, UID, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.kube import config
from dlctl.kube.client import Client
from dlctl.local.apiserver.faults import Fault
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.containers.logs import LogFiles
from dlctl.local.node.containers.pod_paths import PodPaths
from dlctl.local.node.kubelet import KubeletOptions
from dlctl.local.node.pod_garbage_collector import PodGcTiming
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness

HOST = KubeletOptions(network="host")

# Runs until it is killed; the pod has a daemonized process.
SCRIPT = """
import asyncio, sys
from dlctl.api.meta import PODS
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from dlctl.local.node.kubelet import KubeletOptions

async def main(network, mark):
    async with EmbeddedCluster(KubeletOptions(network=network)) as cluster:
        async with Client(cluster.config()) as client:
            command = ["sh", "-c", f"setsid sleep {mark} & echo up; sleep {mark}"]
            container = {"name": "main", "image": "any", "command": command}
            body = {"metadata": {"name": "pod"}, "spec": {"containers": [container]}}
            await client.create(PODS, "default", body)
            async with asyncio.timeout(20):
                while True:
                    try:
                        log = await client.get_raw(PODS.path("default", "pod", "log"))
                        if b"up" in log:
                            break
                    except Exception:
                        await asyncio.sleep(0.02)
            print(cluster.run_dir, cluster.network.mode, flush=True)
            await asyncio.get_running_loop().create_future()

asyncio.run(main(*sys.argv[1:]))
"""


# The limit applies only in its own user namespace.
NO_NAMESPACES = [
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    *('echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"', "sh"),
]
USER_NAMESPACES_ONLY = ["setpriv", "--bounding-set=-sys_admin"]


@asynccontextmanager
async def start(
    *argv: str, confinement: Sequence[str] = (), tmp: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program that is killed at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(*confinement, *argv),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp)} if tmp else None,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def skip_unless_possible(confinement: Sequence[str]) -> None:
    async with start("true", confinement=confinement) as process:
        if await process.wait():
            pytest.skip("namespaces cannot be confined here")


def exists(path: bytes) -> bool:
    return Path(path.decode()).exists()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def processes_with(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if mark.encode() in words:
            found.append(int(path.parent.name))
    return found


async def test_kubeconfig_works_and_is_private(tmp_path: Path) -> None:
    async with EmbeddedCluster(HOST, run_dir=tmp_path / "run") as cluster:
        path = cluster.kubeconfig_path
        assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
        async with Client(await config.load(str(path))) as client:
            node = await client.get(NODES, ObjectKey("", "localhost"), dict[str, Any])
        ready = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        assert ready["Ready"] == "True"
    assert exists(bytes(path)), "a run directory that was named is kept"


async def test_unnamed_run_directory_is_removed_with_the_cluster() -> None:
    async with EmbeddedCluster(HOST) as cluster:
        assert exists(bytes(cluster.run_dir))
    assert not exists(bytes(cluster.run_dir))


async def test_node_that_shuts_down_gives_pods_their_grace_period_and_starts_no_others() -> None:
    saves = "trap 'sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    ignores = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    options = attrs.evolve(HOST, keep_logs=True)
    async with EmbeddedCluster(options) as cluster, Client(cluster.config()) as client:
        harness = NodeHarness(cluster, client)
        for name, script in (("saves", saves), ("ignores", ignores)):
            await harness.start(name, command=["sh", "-c", script])
            await harness.until(name, lambda status: status.get("phase") == "Running")
            await harness.first_line(name)
        uids = {name: UID(harness.uid(name)) for name in ("saves", "ignores")}
        async with asyncio.timeout(20):
            await cluster.node.shut_down(max_grace_s=4)
        await harness.start("late", command=["true"])
        # The status is still that of running pods: the next cluster calls them interrupted.
        for name in ("saves", "ignores"):
            pod = await client.get(PODS, ObjectKey("default", name), dict[str, Any])
            assert pod["status"]["phase"] == "Running"
        logs = {
            name: LogFiles(PodPaths.of(cluster.run_dir, uid).logs("main")).path(0).read_text()
            for name, uid in uids.items()
        }
        late = await client.get(PODS, ObjectKey("default", "late"), dict[str, Any])
    assert logs == {"saves": "ready\nsaved\n", "ignores": "ready\n"}
    assert late["status"]["phase"] == "Pending"


async def test_pod_whose_status_is_written_while_its_node_shuts_down_is_kept(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    ends = make_container("ends", command=["sh", "-c", f"until [ -e {file} ]; do sleep 0.05; done"])
    async with EmbeddedCluster(HOST) as cluster, Client(cluster.config()) as client:
        harness, faults = NodeHarness(cluster, client), cluster.server.faults
        await harness.start("pod", containers=[make_container(command=["sleep", "60"]), ends])
        await harness.until("pod", lambda status: status.get("phase") == "Running")
        faults.add(Fault(verb="patch", resource="pods", subresource="status", delay_s=1))
        file.touch()
        async with asyncio.timeout(20):
            while not faults.matched:  # noqa: ASYNC110 - it is counted, not signalled.
                await asyncio.sleep(0.02)
            await cluster.node.shut_down(max_grace_s=0)
        pod = await client.get(PODS, ObjectKey("default", "pod"), dict[str, Any])
    assert pod["status"]["phase"] == "Running"


async def test_deleted_pod_of_a_node_that_does_not_exist_does_not_stay() -> None:
    soon = PodGcTiming(period_s=0.1, quarantine_s=0.2)
    starting = EmbeddedCluster(HOST, pod_gc_timing=soon)
    async with starting as cluster, Client(cluster.config()) as client:
        harness = NodeHarness(cluster, client)
        await harness.start("lost", nodeName="nowhere")
        await harness.delete("lost")
        await harness.gone("lost")


async def test_error_of_the_block_is_raised_unwrapped() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with EmbeddedCluster(HOST):
            raise KeyError("mine")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("confinement", "mode"),
    [
        pytest.param(NO_NAMESPACES, "host", id="none granted"),
        pytest.param(USER_NAMESPACES_ONLY, "isolated", id="as an ordinary user"),
    ],
)
async def test_network_is_isolated_as_far_as_the_machine_grants_it(
    confinement: list[str], mode: str
) -> None:
    await skip_unless_possible(confinement)
    argv = (sys.executable, "-c", SCRIPT, "auto", "0")
    async with asyncio.timeout(25), start(*argv, confinement=confinement) as process:
        assert process.stdout is not None
        assert (await process.stdout.readline()).split()[1].decode() == mode
        process.send_signal(signal.SIGINT)
        await process.wait()


@pytest.mark.slow
async def test_unavailable_isolation_is_an_error_if_required() -> None:
    await skip_unless_possible(NO_NAMESPACES)
    argv = (sys.executable, "-c", SCRIPT, "isolated", "0")
    async with start(*argv, confinement=NO_NAMESPACES) as process:
        _, stderr = await process.communicate()
    assert b"ConfigError: this machine allows no network namespaces" in stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "signal_"),
    [("auto", signal.SIGKILL), ("host", signal.SIGKILL), ("auto", signal.SIGINT)],
)
async def test_no_process_survives_a_terminated_cluster(
    network: str, signal_: signal.Signals, tmp_path: Path
) -> None:
    mark = f"{3000 + os.getpid()}.{network == 'auto':d}{signal_:d}"
    argv = (sys.executable, "-c", SCRIPT, network, mark)
    # Where no other cluster removes what a killed one leaves.
    async with asyncio.timeout(25), start(*argv, tmp=tmp_path) as process:
        assert process.stdout is not None
        run_dir = (await process.stdout.readline()).split()[0]
        # dlctl itself, the program and its daemonized process.
        while len(processes_with(mark)) < 3:  # noqa: ASYNC110 - other processes have no events
            await asyncio.sleep(0.02)
        process.send_signal(signal_)
        await process.wait()
        while processes_with(mark):  # noqa: ASYNC110 - other processes have no events
            await asyncio.sleep(0.02)
    # A killed process cannot clean up.
    assert exists(run_dir) is (signal_ == signal.SIGKILL)
