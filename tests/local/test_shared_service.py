"""Processes of a job whose replicas share one service find each other by their names."""

import asyncio
import sys
from typing import Any

import pytest

from dlctl.api.meta import PODS, SERVICES, ObjectKey
from dlctl.cli.embedded.cluster_options import ClusterOptions, NetworkChoice
from dlctl.cli.embedded.control_plane import embedded_control_plane
from e2e.cluster.addresses import free_port
from tests.builders import kind_of, manifest
from tests.support.history import History

pytestmark = pytest.mark.slow
KIND = kind_of("kubeflow.org/v1", "JAXJob")
# Each process sends its name and host to the coordinator, which prints them.
PROGRAM = """
import os, socket, threading, time
root = os.environ["COORDINATOR_ADDRESS"], int(os.environ["COORDINATOR_PORT"])
count, rank = int(os.environ["NUM_PROCESSES"]), os.environ["PROCESS_ID"]

def tell():
    for _ in range(500):
        try:
            with socket.create_connection(root) as peer:
                return peer.sendall(f"{rank} {os.environ['HOSTNAME']}".encode())
        except OSError:
            time.sleep(0.02)

threading.Thread(target=tell).start()
if rank == "0":
    print(root[0])
    with socket.create_server(("", root[1])) as server:
        for line in sorted(server.accept()[0].makefile().read() for _ in range(count)):
            print(line)
"""


def job(port: int) -> dict[str, Any]:
    container = {
        "name": "jax",
        "image": "any",
        "command": [sys.executable, "-c", PROGRAM],
        "ports": [{"name": "jaxjob-port", "containerPort": port}],
    }
    worker = {"replicas": 3, "template": {"spec": {"containers": [container]}}}
    spec = {"jaxReplicaSpecs": {"Worker": worker}}
    wire = manifest("kubeflow.org/v1", "JAXJob", spec, name="names")
    metadata = {"name": "names", "annotations": {"dlctl.dev/service": "job"}}
    return {**wire, "metadata": metadata}


@pytest.mark.parametrize("network", ["auto", "host"])
async def test_processes_find_each_other_within_the_service(network: NetworkChoice) -> None:
    async with embedded_control_plane([KIND], ClusterOptions(network=network)) as running:
        isolated = running.cluster.network.isolated
        if network == "auto" and not isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")
        history = History(running.cluster.server)
        storage = running.cluster.server.storage
        await running.client.create(KIND.resource, "default", job(free_port()))

        def phase() -> str:
            stored = storage.get(KIND.resource, ObjectKey("default", "names"))
            assert stored is not None
            status = stored.decoded(KIND.resource).get("status") or {}
            return str((status.get("dlctl") or {}).get("phase"))

        async with asyncio.timeout(25):
            while phase() != "Done":
                history.changed.clear()
                await history.changed.wait()
        path = PODS.path("default", "names-worker-0", "log")
        log = (await running.client.get_raw(path)).decode()
        assert [s.key.name for s in storage.objects(SERVICES, "default")] == ["names"]
    address = "names-worker-0.names" if isolated else "127.0.0.1"
    assert log.splitlines() == [address, *(f"{rank} names-worker-{rank}" for rank in range(3))]
