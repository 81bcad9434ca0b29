"""Connections to ports of pods, by the protocols of kubectl and of Python clients."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from dlctl.api.meta import PODS
from tests.local.node.builders import make_container
from tests.local.node.exec_streams import session, start
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
# Repeats each line with the name of its pod, as long as it comes.
ECHO = """
import asyncio, os, sys
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(os.environ["HOSTNAME"].encode() + b":" + line)
    writer.close()
    print("closed", flush=True)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 22)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def start_echo(harness: NodeHarness, name: str, port: int) -> None:
    command = [sys.executable, "-c", ECHO, str(port)]
    await harness.start(name, containers=[make_container(command=command)])
    await harness.until(name, lambda status: status["phase"] == "Running")
    assert await harness.first_line(name) == "listening"


@asynccontextmanager
async def forwarded(harness: NodeHarness, name: str, port: int, **env: str) -> AsyncIterator[int]:
    """Run ``kubectl port-forward``; yield the local port."""
    assert KUBECTL is not None
    process = await asyncio.create_subprocess_exec(
        KUBECTL,
        *("--kubeconfig", str(harness.cluster.kubeconfig_path)),
        *("port-forward", name, f":{port}"),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | env,
    )
    assert process.stdout is not None
    async with asyncio.timeout(15):
        line = await process.stdout.readline()
    try:
        # Forwarding from 127.0.0.1:41503 -> 8080
        yield int(line.split()[2].rpartition(b":")[2])
    finally:
        process.kill()
        await process.communicate()


async def asked(port: int, line: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(line)
    writer.write_eof()
    async with asyncio.timeout(15):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize("websockets", ["true", "false"], ids=["WebSockets", "SPDY"])
async def test_kubectl_forwards_many_connections_to_one_pod(
    harness: NodeHarness, websockets: str
) -> None:
    name, port = f"web-{websockets}", 8123 if websockets == "true" else 8124
    await start_echo(harness, name, port)
    env = {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    async with forwarded(harness, f"pod/{name}", port, **env) as local:
        long = b"x" * 2_000_000 + b"\n"
        lines = [b"a\n", b"b\n", long]
        answers = await asyncio.gather(*(asked(local, line) for line in lines))
        assert answers == [f"{name}:".encode() + line for line in lines]
        assert await asked(local, b"again\n") == f"{name}:again\n".encode()


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize("websockets", ["true", "false"], ids=["WebSockets", "SPDY"])
async def test_connection_ends_when_kubectl_is_killed(
    harness: NodeHarness, websockets: str
) -> None:
    name, port = f"killed-{websockets}", 8127 if websockets == "true" else 8128
    await start_echo(harness, name, port)
    env = {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    async with forwarded(harness, f"pod/{name}", port, **env) as local:
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"a\n")
        assert await reader.readline() == f"{name}:a\n".encode()
    await until_logged(harness, name, b"closed")
    writer.close()


async def until_logged(harness: NodeHarness, name: str, text: bytes) -> None:
    path, seen = PODS.path("default", name, "log"), b""
    async with asyncio.timeout(15), harness.client.stream(path, {"follow": "true"}) as chunks:
        async for chunk in chunks:
            seen += chunk
            if text in seen:
                return
    raise AssertionError(seen)


def url(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}/portforward"


async def test_python_clients_forward_by_channels(harness: NodeHarness) -> None:
    await start_echo(harness, "channels", 8125)
    async with (
        session(harness) as client,
        client.ws_connect(
            url("channels"), params={"ports": "8125"}, protocols=["v4.channel.k8s.io"]
        ) as socket,
        asyncio.timeout(15),
    ):
        port = (8125).to_bytes(2, "little")
        assert await socket.receive_bytes() == b"\0" + port
        assert await socket.receive_bytes() == b"\1" + port
        await socket.send_bytes(b"\0hello\n")
        assert await socket.receive_bytes() == b"\0channels:hello\n"


async def test_connection_ends_when_a_python_client_disconnects(harness: NodeHarness) -> None:
    await start_echo(harness, "vanished", 8129)
    async with session(harness) as client, asyncio.timeout(15):
        socket = await client.ws_connect(
            url("vanished"), params={"ports": "8129"}, protocols=["v4.channel.k8s.io"]
        )
        await socket.send_bytes(b"\0hello\n")
        assert [await socket.receive_bytes() for _ in range(3)][2] == b"\0vanished:hello\n"
        # Without the closing handshake of WebSockets.
        await client.close()
    await until_logged(harness, "vanished", b"closed")


async def test_port_on_which_nothing_listens_is_named(harness: NodeHarness) -> None:
    await start(harness, "mute")
    async with (
        session(harness) as client,
        client.ws_connect(
            url("mute"), params={"ports": "8126"}, protocols=["v4.channel.k8s.io"]
        ) as socket,
        asyncio.timeout(15),
    ):
        messages = [await socket.receive_bytes() for _ in range(3)]
    assert messages[2] == b"\1port 8126 of the pod: Connection refused"


async def test_request_without_an_upgrade_is_rejected(harness: NodeHarness) -> None:
    await start(harness, "plain")
    async with session(harness) as client, client.post(url("plain")) as response:
        assert (response.status, (await response.json())["message"]) == (
            400,
            "Upgrade request required",
        )


async def test_more_ports_than_there_are_channels_are_rejected(harness: NodeHarness) -> None:
    await start(harness, "many")
    ports = ",".join(str(port) for port in range(8000, 8129))
    async with session(harness) as client, client.get(url("many"), params={"ports": ports}) as said:
        assert said.status == 400
        assert (await said.json())["message"] == '"ports" may be 128 at most, got 129'


async def test_other_protocols_are_rejected_with_those_served(harness: NodeHarness) -> None:
    await start(harness, "other")
    async with session(harness) as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await client.ws_connect(url("other"), protocols=["x.k8s.io"])
    assert caught.value.status == 400
