"""Pods that share the machine's network and file system, without namespaces."""

import asyncio
from pathlib import Path

import pytest

from dlctl.api.meta import SERVICES
from tests.local.node.builders import make_container
from tests.local.node.exec_streams import run, session, start
from tests.local.node.harness import NodeHarness, container

pytestmark = pytest.mark.asyncio(loop_scope="module")

NETWORK = "host"
PORTS = [{"port": 9091}]
# Prints a free port and says hello there.
_ANSWER = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1])
    with server.accept()[0] as connection:
        connection.sendall(b"hello")
"""


def is_alive(pid: str) -> bool:
    return Path("/proc", pid.strip()).exists()


async def test_isolation_mode_and_its_reason_are_reported(harness: NodeHarness) -> None:
    assert harness.cluster.network.mode == "host"
    assert harness.cluster.network.reason == "requested"


async def test_names_of_services_are_replaced_by_loopback(harness: NodeHarness) -> None:
    await harness.create(SERVICES, "job-scheduler-0", spec={"selector": {"a": "b"}, "ports": PORTS})
    env = [{"name": "DMLC_PS_ROOT_URI", "value": "job-scheduler-0"}]
    command = ["sh", "-c", "echo $DMLC_PS_ROOT_URI tcp://job-scheduler-0.default:9091"]
    status = await harness.run("names", command=command, env=env)
    assert await harness.log("names") == "127.0.0.1 tcp://127.0.0.1:9091\n"
    assert status["podIP"] == "127.0.0.1"


async def test_path_of_a_volume_is_replaced_by_its_directory(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/dlctl-test-room"}]
    await harness.run(
        "volume",
        volumes=[{"name": "room", "emptyDir": {}}],
        containers=[
            make_container(
                command=["sh", "-c", "pwd; echo x >/dlctl-test-room/x; ls"],
                workingDir="/dlctl-test-room",
                volumeMounts=mounts,
            )
        ],
    )
    where, found = (await harness.log("volume")).split()
    assert Path(where).is_relative_to(harness.cluster.run_dir)
    assert found == "x"


@pytest.mark.parametrize(
    ("name", "path", "fields"),
    [
        pytest.param("default", "/dev/termination-log", {}, id="default"),
        pytest.param(
            "own", "/dlctl-test/why", {"terminationMessagePath": "/dlctl-test/why"}, id="own"
        ),
    ],
)
async def test_path_of_the_termination_message_is_replaced_by_its_file(
    harness: NodeHarness, name: str, path: str, fields: dict[str, str]
) -> None:
    main = make_container(command=["sh", "-c", f"echo -n because >{path}; exit 1"], **fields)
    status = await harness.run(f"message-{name}", containers=[main])
    assert container(status)["state"]["terminated"]["message"] == "because"


async def test_end_of_a_container_kills_its_background_processes(harness: NodeHarness) -> None:
    status = await harness.run("leaves", command=["sh", "-c", "setsid sleep 300 & echo $!"])
    assert container(status)["state"]["terminated"]["exitCode"] == 0
    assert not is_alive(await harness.log("leaves"))


async def test_deletion_kills_daemonized_processes(harness: NodeHarness) -> None:
    script = "setsid sh -c 'echo $$$$; exec sleep 300' & sleep 300"
    await harness.start("escapes", command=["sh", "-c", script])
    await harness.until("escapes", lambda status: status["phase"] == "Running")
    pid = await harness.first_line("escapes")
    assert is_alive(pid)
    await harness.delete("escapes", grace_period_s=60)
    await harness.gone("escapes")
    assert not is_alive(pid)


async def test_background_processes_of_a_command_end_with_the_container(
    harness: NodeHarness,
) -> None:
    await start(harness, "left-behind")
    script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!"
    _, said = await run(harness, "left-behind", "sh", "-c", script)
    assert is_alive(said.out)
    await harness.delete("left-behind")
    await harness.gone("left-behind")
    assert not is_alive(said.out)


async def test_pod_finds_the_server_by_its_own_kubeconfig(harness: NodeHarness) -> None:
    script = "cat $KUBECONFIG; echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"
    await harness.run("kubeconfig", command=["sh", "-c", script])
    log = await harness.log("kubeconfig")
    server = harness.cluster.server.url
    assert f"server: {server}\n" in log
    assert log.endswith(server.removeprefix("https://") + "\n")
    assert harness.cluster.server.token not in log


async def test_ports_are_forwarded(harness: NodeHarness) -> None:
    command = ["python3", "-uc", _ANSWER]
    await harness.start("listens", containers=[make_container(command=command)])
    await harness.until("listens", lambda status: status["phase"] == "Running")
    port = await harness.first_line("listens")
    async with (
        session(harness) as client,
        client.ws_connect(
            "/api/v1/namespaces/default/pods/listens/portforward",
            params={"ports": port},
            protocols=["v4.channel.k8s.io"],
        ) as socket,
        asyncio.timeout(15),
    ):
        messages = [await socket.receive_bytes() for _ in range(3)]
    assert messages[2] == b"\0hello"
