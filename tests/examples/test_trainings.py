"""The examples, run as their first lines document: real frameworks on an embedded cluster.

Each script checks its model itself.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, ObjectKey
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import embedded_control_plane
from dlctl.dialects.kinds import kind_of_api_version
from tests.builders import KINDS
from tests.examples.running import LIMIT_S, PROJECT, Example, log, need, until

pytestmark = [pytest.mark.examples, pytest.mark.timeout(LIMIT_S + 30)]

SSHD: Final = "/usr/sbin/sshd"
EXAMPLES: Final = [
    Example("jax/linear-psum.yaml", "jax"),
    Example("mpi/linear-mpirun.yaml", "mpi4py", debian=True, program="kubectl"),
    Example("mpi/pi.yaml", "mpi4py", says="pi is 3.14159", debian=True, program=SSHD),
    Example("mpi/pi-nonroot.yaml", "mpi4py", says="pi is 3.14159", debian=True, program=SSHD),
    Example("mxnet/linear-dist.yaml", "mxnet"),
    Example("mxnet/linear-v1.yaml", "mxnet"),
    Example("paddle/linear-collective.yaml", "paddle"),
    Example("pytorch/linear-ddp.yaml", "torch", debian=True),
    Example("tensorflow/linear-mirrored.yaml", "tensorflow"),
    Example("tensorflow/linear-ps.yaml", "tensorflow"),
    Example("xgboost/moons.yaml", "xgboost", says="accuracy "),
]
ELASTIC: Final = Example("pytorch/linear-elastic.yaml", "torch", debian=True)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.manifest)
def test_example_trains_a_model(example: Example) -> None:
    need(example)
    assert example.says in output_of(example.manifest, example.prefix)


@pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="mpicc.mpich is not on PATH")
def test_mpich_computes_pi(tmp_path: Path) -> None:
    folder, bin_ = PROJECT / "examples" / "mpi", tmp_path / "bin"
    bin_.mkdir()
    shutil.copy(folder / "wait-for-names", bin_ / "entrypoint")
    subprocess.run(["mpicc.mpich", "-o", bin_ / "pi", folder / "pi.c"], check=True)
    assert "pi is 3.14159" in output_of("mpi/pi-mpich.yaml", tmp_path)


def output_of(manifest: str, prefix: Path) -> str:
    """Return what `dlctl run` prints of a job that succeeds."""
    image = f"dlctl/{manifest.partition('/')[0]}={prefix}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dlctl", "run", f"examples/{manifest}"),
            *("--image", image, "--timeout", str(LIMIT_S)),
        ],
        check=False,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


async def test_elastic_example_continues_when_a_worker_is_killed() -> None:
    need(ELASTIC)
    path = PROJECT / "examples" / ELASTIC.manifest
    manifest, config = yaml.safe_load_all(path.read_text())
    kind = kind_of_api_version(KINDS, manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    resource, name = kind.resource, manifest["metadata"]["name"]
    stays, killed = f"{name}-worker-1", f"{name}-worker-2"
    async with embedded_control_plane(
        KINDS, ClusterOptions({"dlctl/pytorch": ELASTIC.prefix})
    ) as running:
        client = running.client
        await client.create(CONFIG_MAPS, "default", config)
        await client.create(resource, "default", manifest)

        async def trains() -> bool:
            return "epoch  3 of 24 with 3 workers" in await log(running, stays)

        async def ended() -> JSON | None:
            job = await client.get(resource, ObjectKey("default", name), JSON)
            conditions = {c["type"]: c for c in job["status"].get("conditions", ())}
            assert "Failed" not in conditions, conditions
            return conditions.get("Succeeded")

        await until(trains)
        await client.delete(PODS, ObjectKey("default", killed), grace_period_s=0)
        await until(ended)
        said = await log(running, stays)
    begun, *resumed = [line for line in said.splitlines() if "goes on after epoch" in line]
    assert begun.endswith("epoch 0")
    assert resumed, said
    assert not resumed[-1].endswith("epoch 0")
    assert ELASTIC.says in said
