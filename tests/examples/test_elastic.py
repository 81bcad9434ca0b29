"""Elastic Horovod on the embedded cluster: sshd in pods, a varying number of workers.

As root, sshd changes its user, and needs its own directory.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, ObjectKey, Resource
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane, embedded_control_plane
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.dialects.kinds import kind_of_api_version
from tests.builders import KINDS
from tests.examples.running import PROJECT, Example, log, need, until

# Workers load TensorFlow one after the other, where cores are few.
RESCALE_S: Final = 180
EXAMPLE: Final = Example("horovod/elastic.yaml", "horovod", program="/usr/sbin/sshd")
SSHD: Final = Path("/run/sshd")
WORKERS: Final = "training-job-role=worker"
LAUNCHERS: Final = "training.kubeflow.org/job-role=launcher"

pytestmark = [pytest.mark.examples, pytest.mark.timeout(5 * RESCALE_S)]


@pytest.mark.skipif(os.geteuid() != 0 or not SSHD.is_dir(), reason=f"not root, or no {SSHD}")
async def test_horovod_continues_while_the_number_of_workers_changes() -> None:
    need(EXAMPLE)
    job, config = manifests("elastic.yaml")
    kind = kind_of_api_version(KINDS, job["apiVersion"], job["kind"])
    assert kind is not None
    name = job["metadata"]["name"]
    key, launcher = ObjectKey("default", name), f"{name}-launcher"
    async with embedded_control_plane(
        KINDS, ClusterOptions({"dlctl/horovod": EXAMPLE.prefix})
    ) as running:
        client = running.client
        if not running.cluster.network.isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")

        async def trains_in(count: int) -> None:
            async def probe() -> bool:
                await check_alive()
                return f" size {count} rank 0 loss " in await log(running, launcher)

            await until(probe, within_s=RESCALE_S)

        async def check_alive() -> JSON:
            found: JSON = (await client.get(kind.resource, key, JSON)).get("status", {})
            assert found.get("phase") != "Failed", await log(running, launcher)
            return found

        async def succeeded() -> bool:
            return bool((await check_alive())["phase"] == "Succeeded")

        await client.create(CONFIG_MAPS, "default", config)
        await client.create(kind.resource, "default", job)
        await trains_in(2)
        await scale(running, SCALE_OUTS, "scale-out.yaml")
        await trains_in(4)
        await scale(running, SCALE_INS, "scale-in.yaml")
        await trains_in(1)
        pods = await client.list(PODS, JSON, namespace="default", label_selector=WORKERS)
        await until(succeeded, within_s=RESCALE_S)
        said = await log(running, launcher)
    assert [pod["metadata"]["name"] for pod in pods.items] == [f"{name}-worker-0"]
    steps = [int(line.split()[2]) for line in said.splitlines() if " rank 0 loss " in line]
    assert steps == sorted(set(steps))
    assert " sizes 2 4 1\n" in said
    assert EXAMPLE.says in said


async def test_horovod_follows_the_workers_of_an_mpijob() -> None:
    need(EXAMPLE)
    mpi = kind_of_api_version(KINDS, "kubeflow.org/v2beta1", "MPIJob")
    assert mpi is not None
    job, config = mpijob()
    key = ObjectKey("default", job["metadata"]["name"])
    async with embedded_control_plane(
        KINDS, ClusterOptions({"dlctl/horovod": EXAMPLE.prefix})
    ) as running:
        client = running.client
        if not running.cluster.network.isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")

        async def launcher_says() -> str:
            pods = await client.list(PODS, JSON, namespace="default", label_selector=LAUNCHERS)
            return "".join([await log(running, pod["metadata"]["name"]) for pod in pods.items])

        async def trains_in(count: int) -> bool:
            return f" size {count} rank 0 loss " in await launcher_says()

        async def succeeded() -> bool:
            status: JSON = (await client.get(mpi.resource, key, JSON)).get("status", {})
            true = [c["type"] for c in status.get("conditions", ()) if c["status"] == "True"]
            assert "Failed" not in true, await launcher_says()
            return "Succeeded" in true

        await client.create(CONFIG_MAPS, "default", config)
        await client.create(mpi.resource, "default", job)
        await until(partial(trains_in, 2), within_s=RESCALE_S)
        await client.patch(mpi.resource, key, workers_patch(3))
        await until(partial(trains_in, 3), within_s=RESCALE_S)
        await until(succeeded, within_s=RESCALE_S)
        said = await launcher_says()
    assert " sizes 2 3\n" in said
    assert EXAMPLE.says in said


def mpijob() -> tuple[JSON, JSON]:
    """Return the example as an MPIJob of v2beta1, and its script."""
    job, config = manifests("elastic.yaml")
    replicas = job["spec"]["etReplicaSpecs"]
    launcher, worker = (replicas[type_]["template"] for type_ in ("launcher", "worker"))
    (container,) = launcher["spec"]["containers"]
    args = [*container["args"][:-2], "--slots-per-host", "1", *container["args"][-2:]]
    args[args.index("--host-discovery-script") + 1] = "/etc/mpi/discover_hosts.sh"
    container["args"] = args
    spec = {
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": launcher},
            "Worker": {"replicas": 2, "template": worker},
        },
    }
    form = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    return {**form, "metadata": {"name": "elastic"}, "spec": spec}, config


def workers_patch(count: int) -> JSON:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}}


def manifests(file: str) -> list[Any]:
    path = PROJECT / "examples" / EXAMPLE.framework / file
    return list(yaml.safe_load_all(path.read_text()))


async def scale(running: EmbeddedControlPlane, resource: Resource, file: str) -> None:
    """Apply a manifest, and wait until its request has finished."""
    made = await running.client.create(resource, "default", manifests(file)[0], JSON)

    async def done() -> bool:
        key = ObjectKey("default", made["metadata"]["name"])
        status: JSON = (await running.client.get(resource, key, JSON)).get("status", {})
        assert status.get("phase") != "ScaleFailed", status
        return bool(status.get("phase") == "ScaleSucceeded")

    await until(done, within_s=RESCALE_S)
