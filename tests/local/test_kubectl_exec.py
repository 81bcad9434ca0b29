"""The real kubectl running commands in pods of the embedded cluster, and one pod in another."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator

import pytest

from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from tests.local.node.exec_streams import V5, ExecStream, session, start
from tests.local.node.harness import NodeHarness
from tests.local.node.rbac import grant, rule

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@pytest.fixture
async def harness() -> AsyncIterator[NodeHarness]:
    async with EmbeddedCluster() as cluster, Client(cluster.config()) as client:
        yield NodeHarness(cluster, client)


async def kubectl(
    harness: NodeHarness, *args: str, stdin: bytes | None = None, **env: str
) -> tuple[int | None, str, str]:
    assert KUBECTL is not None
    process = await asyncio.create_subprocess_exec(
        KUBECTL,
        *("--kubeconfig", str(harness.cluster.kubeconfig_path), *args),
        env=os.environ | env,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate(stdin)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("websockets", ["true", "false"], ids=["WebSockets", "SPDY"])
async def test_kubectl_runs_commands(harness: NodeHarness, websockets: str) -> None:
    await start(harness, "web")

    async def execute(*args: str, stdin: bytes | None = None) -> tuple[int | None, str, str]:
        env = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
        return await kubectl(harness, "exec", *args, stdin=stdin, **env)

    script = "echo out; echo err >&2; exit 7"
    code, out, err = await execute("web", "--", "sh", "-c", script)
    assert (code, out) == (7, "out\n")
    assert err == "err\ncommand terminated with exit code 7\n"

    sent = b"x" * 100_000
    assert await execute("-i", "web", "--", "wc", "-c", stdin=sent) == (0, "100000\n", "")
    code, _, err = await execute("absent", "--", "true")
    assert (code, err) == (1, 'Error from server (NotFound): pods "absent" not found\n')
    code, _, err = await execute("web", "--", "no-such-program")
    assert code == 1
    assert "no-such-program: No such file or directory" in err


async def test_kubectl_attaches_to_a_running_container(harness: NodeHarness) -> None:
    script = "echo early; until test -e go; do echo tick; sleep 0.01; done; echo late"
    await harness.start("shown", command=["sh", "-c", script])
    await harness.until("shown", lambda status: status["phase"] == "Running")
    assert await harness.first_line("shown") == "early"
    async with session(harness) as client:
        url = "/api/v1/namespaces/default/pods/shown/attach"
        async with client.ws_connect(url, params={"stdout": "true"}, protocols=[V5]) as socket:
            attached = ExecStream(socket)
            await attached.until(b"tick")
            work = harness.cluster.run_dir / "pods" / harness.uid("shown") / "work"
            await asyncio.to_thread((work / "go").touch)
            assert (await attached.end())["status"] == "Success"
    assert attached.out.endswith("late\n")
    assert "early" not in attached.out

    code, _, err = await kubectl(harness, "attach", "shown")
    assert (code, "completed pod" in err) == (1, True)
    code, _, err = await kubectl(harness, "debug", "shown", "--image=x", "--", "sh")
    assert (code, "ephemeral containers are disabled for this cluster" in err) == (1, True)


async def test_pod_can_exec_into_another_if_its_account_may(harness: NodeHarness) -> None:
    """Exec like the launcher of an MPIJob; outside pods, kubectl is the admin's."""
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")
    await start(harness, "worker-0")
    await start(harness, "worker-1")
    await grant(
        harness,
        "launcher",
        rule("pods", "get", "list", "watch"),
        rule("pods/exec", "create", resourceNames=["worker-0"]),
    )
    script = (
        f"for i in 0 1; do {KUBECTL} exec worker-$i -- /bin/sh -c 'echo ran on $HOSTNAME'; done"
    )
    await harness.run("launcher", command=["sh", "-c", script], serviceAccountName="launcher")
    log = await harness.log("launcher")
    assert "ran on worker-0\n" in log
    assert "ran on worker-1\n" not in log
    assert 'cannot create resource "pods/exec"' in log


async def test_cluster_stops_despite_a_running_command() -> None:
    async with EmbeddedCluster() as cluster, Client(cluster.config()) as client:
        lab = NodeHarness(cluster, client)
        await start(lab, "web")
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *("--kubeconfig", str(cluster.kubeconfig_path), "exec", "web", "--"),
            *("sh", "-c", "echo up; sleep 1000"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        async with asyncio.timeout(10):
            assert await process.stdout.readline() == b"up\n"
    async with asyncio.timeout(10):
        assert await process.wait() != 0
