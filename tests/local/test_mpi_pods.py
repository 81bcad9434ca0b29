"""An mpirun in one pod that starts its processes in others, like an MPIJob.

The pods are plain, so this tests the cluster: kubectl in a pod, the rights of its account, files
from a ConfigMap, addresses that reach each other. Needs Open MPI and kubectl.
"""

import os
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dlctl.api.meta import CONFIG_MAPS
from dlctl.kube.client import Client
from dlctl.local.cluster import EmbeddedCluster
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness
from tests.local.node.rbac import grant, rule

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed"),
]
WORKERS = ("mpi-worker-0", "mpi-worker-1", "mpi-worker-2")
CONFIG = {
    "hostfile": "".join(f"{name} slots=1\n" for name in WORKERS),
    "kubexec.sh": (
        "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n"
        '/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
    ),
}


@pytest.fixture
async def harness() -> AsyncIterator[NodeHarness]:
    async with EmbeddedCluster() as cluster, Client(cluster.config()) as client:
        yield NodeHarness(cluster, client)


def config_volume(*names: str) -> dict[str, Any]:
    items = [
        {"key": name, "path": name, "mode": 0o555 if name.endswith(".sh") else 0o444}
        for name in names
    ]
    return {"name": "config", "configMap": {"name": "mpi-config", "items": items}}


CONFIG_MOUNT = {"name": "config", "mountPath": "/etc/mpi"}
KUBECTL_MOUNT = {"name": "kubectl", "mountPath": "/opt/kube"}


async def test_mpirun_starts_its_processes_in_other_pods(harness: NodeHarness) -> None:
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")
    await harness.create(CONFIG_MAPS, "mpi-config", data=CONFIG)
    await grant(
        harness,
        "mpi-launcher",
        rule("pods", "get", "list", "watch"),
        rule("pods/exec", "create", resourceNames=[*WORKERS]),
    )
    for name in WORKERS:
        worker = make_container(command=["sleep", "1000"], volumeMounts=[CONFIG_MOUNT])
        await harness.start(name, containers=[worker], volumes=[config_volume("kubexec.sh")])
    for name in WORKERS:
        await harness.until(name, lambda status: status["phase"] == "Running")
    env = {
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    delivery = make_container(
        "kubectl-delivery",
        command=["cp", str(KUBECTL), "/opt/kube/kubectl"],
        volumeMounts=[KUBECTL_MOUNT],
    )
    mpirun = make_container(
        command=["mpirun", "--bind-to", "none", "-np", "3", "sh", "-c"],
        args=["echo rank $$OMPI_COMM_WORLD_RANK of $$OMPI_COMM_WORLD_SIZE on $$(hostname)"],
        env=[{"name": name, "value": value} for name, value in env.items()],
        volumeMounts=[CONFIG_MOUNT, KUBECTL_MOUNT],
    )
    status = await harness.run(
        "mpi-launcher",
        serviceAccountName="mpi-launcher",
        initContainers=[delivery],
        containers=[mpirun],
        volumes=[config_volume(*CONFIG), {"name": "kubectl", "emptyDir": {}}],
    )
    log = await harness.log("mpi-launcher")
    assert status["phase"] == "Succeeded", log
    said = sorted(line for line in log.splitlines() if line.startswith("rank "))
    assert said == [f"rank {rank} of 3 on {name}" for rank, name in enumerate(WORKERS)]
