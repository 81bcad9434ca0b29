"""Pods of an elastic job as plain processes: keys, files, init container."""

import os
import shutil
from typing import Any

import pytest

from dlctl.api.meta import PODS, SERVICES
from dlctl.api.objects.dependents import Dependent
from dlctl.api.status.membership import Membership
from tests.frameworks.horovod.builders import LAUNCHER, WORKER, elastic, mutated_pod_spec, pod
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAME = "et-worker-0"
PORT = 22
SSHD = """
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f /run/sshd/key
exec /usr/sbin/sshd -D -e -f /dev/null -h /run/sshd/key
"""


@pytest.fixture(autouse=True)
def _isolated(harness: NodeHarness) -> None:
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")


def commanded(script: str, **fields: Any) -> dict[str, Any]:
    spec = pod(**fields)
    spec["containers"][0]["command"] = ["sh", "-c", script]
    return spec


async def make(harness: NodeHarness, name: str, spec: Any, labels: dict[str, str]) -> None:
    metadata = {"name": name, "labels": labels}
    # Service accounts are not tested here.
    spec = {**spec, "serviceAccountName": "default"}
    await harness.client.create(PODS, "default", {"metadata": metadata, "spec": spec})


async def create_dependent(harness: NodeHarness, made: Dependent) -> None:
    body = {**made.body, "metadata": {"name": made.name}}
    await harness.client.create(made.resource, "default", body)


# sshd changes its user, which requires root, even in a namespace.
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ssh") is None or shutil.which("sshd") is None,
    reason="not root, or no OpenSSH",
)
async def test_launcher_logs_in_to_a_worker_created_later(
    harness: NodeHarness,
) -> None:
    framework = elastic(
        membership=Membership(members=(0,), hosts=(0,)),
        worker=commanded(SSHD),
        launcher=commanded(
            "cat /job/hostfile; sh /etc/edl/discover_hosts.sh | "
            "while IFS=: read host slots; do ssh -n $$host echo in $$host; done"
        ),
    )
    *_, files = framework.dependents(())
    for made in (files, *framework.secrets()):
        await create_dependent(harness, made)
    service = {"clusterIP": "None", "selector": {"app": NAME}, "ports": [{"port": PORT}]}
    await harness.create(SERVICES, NAME, spec=service)

    await make(harness, "et-launcher", mutated_pod_spec(framework, LAUNCHER), {})
    await harness.until("et-launcher", lambda status: "running" in str(status))
    line = await harness.first_line("et-launcher", container="init-hostfile")
    await make(harness, NAME, mutated_pod_spec(framework, WORKER), {"app": NAME})
    status = await harness.finished("et-launcher")

    assert status["phase"] == "Succeeded", await harness.log(NAME)
    assert line == f"waiting for {NAME}"
    assert await harness.log("et-launcher", container="main") == f"{NAME} slots=1\nin {NAME}\n"
