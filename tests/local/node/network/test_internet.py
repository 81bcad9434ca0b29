"""What isolated pods reach outside of their network; the machine's own address stands for it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from e2e.cluster.addresses import free_port
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Sends its arguments, and then prints what comes back until the other side ends.
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as peer:
    peer.sendall(sys.argv[3].encode())
    peer.shutdown(socket.SHUT_WR)
    print(len(peer.makefile().read()))
"""
ANSWER = b"x" * 3_000_000


def machine_ip() -> str | None:
    """Return an address of this machine that is not its loopback's."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe, suppress(OSError):
        # Sends nothing.
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return None


@pytest.fixture(autouse=True)
def _internet(harness: NodeHarness) -> None:
    network = harness.cluster.network
    if not harness.isolated or network.no_internet:
        pytest.skip(f"no relay: {network.reason}{network.no_internet}")


@pytest_asyncio.fixture(loop_scope="module")
async def outside() -> AsyncIterator[tuple[str, str]]:
    """Serve an answer to whoever sends "hello", on an address of the machine."""
    ip = machine_ip()
    if ip is None:
        pytest.skip("the machine has only a loopback")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read() == b"hello":
            writer.write(ANSWER)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, ip) as server:
        yield ip, str(server.sockets[0].getsockname()[1])


@pytest.mark.parametrize("host_network", [False, True])
async def test_pod_exchanges_data_with_the_outside(
    harness: NodeHarness, outside: tuple[str, str], host_network: bool
) -> None:
    name = f"asks-{host_network}".lower()
    command = ["python3", "-c", ASK, *outside, "hello"]
    await harness.run(name, command=command, hostNetwork=host_network)
    assert await harness.log(name) == f"{len(ANSWER)}\n"


async def test_connection_that_is_refused_outside_ends_with_an_error(
    harness: NodeHarness, outside: tuple[str, str]
) -> None:
    with socket.create_server((outside[0], 0)) as closed:
        port = closed.getsockname()[1]
    command = ["python3", "-c", ASK, outside[0], str(port), "hello"]
    status = await harness.run("refused", command=command)
    assert status["phase"] == "Failed"
    assert "Connection" in await harness.log("refused")


async def test_pods_ask_the_machines_name_server_and_unknown_cluster_names_do_not_exist(
    harness: NodeHarness,
) -> None:
    script = "cat /etc/resolv.conf; getent hosts not-there not-there.default.svc || echo unknown"
    await harness.run("resolves", command=["sh", "-c", script])
    assert await harness.log("resolves") == "nameserver 10.244.0.1\nunknown\n"


async def test_nothing_outside_reaches_a_pod(harness: NodeHarness) -> None:
    # Not one that the kernel gives to the next server.
    port = free_port()
    serve = f"import socket; s = socket.create_server(('', {port})); print('up', flush=True)"
    command = ["python3", "-c", f"{serve}; s.accept()"]
    await harness.start("inside", containers=[make_container(command=command)])
    await harness.until("inside", lambda status: status["phase"] == "Running")
    assert await harness.first_line("inside") == "up"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    await harness.delete("inside", grace_period_s=0)
