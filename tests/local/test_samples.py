"""Manifests of users of the replaced systems run unchanged to their end, by real processes.

The images are not available: an environment with a program that plays parameter server over plain
sockets replaces them. It knows its cluster only from the environment.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane, embedded_control_plane
from dlctl.dialects.kinds import kind_of_api_version
from tests.builders import KINDS
from tests.support.history import History

FOLDER = Path(__file__).parents[2].parent / "shared" / "samples" / "mxjob"
SAMPLES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.yaml"))}
pytestmark = pytest.mark.skipif(not SAMPLES, reason="the samples are not at hand")
ROLES = ("scheduler", "server", "worker")
# By dialect: the created services and pods, and the pods after clean-up.
CHILDREN = {
    "kubeflow.org/v1alpha1": (1, 3, 0),
    "fioravanzo.org/v1alpha1": (3, 3, 3),
    "mpba.fbk.eu/v1": (3, 3, 3),
}

# Every role writes its environment to ``said``. While a file ``stay`` exists, none ends.
PLAY = """#!{python}
import json, os, pathlib, socket, sys, time

role, name = os.environ["DMLC_ROLE"], os.environ["HOSTNAME"]
root = os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])
said = pathlib.Path({said!r})
env = {{k: v for k, v in os.environ.items() if k.startswith("DMLC_")}}
told = {{"env": env, "args": sys.argv[1:], "cwd": os.getcwd()}}
(said / (role + ".json")).write_text(json.dumps({{"name": name, **told}}))

def connected():
    for _ in range(200):
        try:
            return socket.create_connection(root)
        except OSError as error:
            print(error, flush=True)
            time.sleep(0.05)
    sys.exit("the scheduler cannot be reached")

if role == "scheduler":
    size = int(os.environ["DMLC_NUM_SERVER"]) + int(os.environ["DMLC_NUM_WORKER"])
    with socket.create_server(("", root[1])) as listener:
        peers = [listener.accept()[0].makefile("rw") for _ in range(size)]
    roles = [peer.readline().strip() for peer in peers]
    done = [peer.readline().strip() for who, peer in zip(roles, peers) if who == "worker"]
    (said / "peers").write_text(" ".join(sorted(roles) + done))
else:
    with connected() as sock, sock.makefile("rw") as scheduler:
        print(role, file=scheduler, flush=True)
        while role == "worker" and (said / "stay").exists():
            time.sleep(0.05)
        if role == "worker":
            print("done", file=scheduler, flush=True)
        else:
            scheduler.read()
"""


@attrs.frozen
class RunningSample:
    """A cluster with one sample, and the output of its processes."""

    running: EmbeddedControlPlane
    history: History
    job: JSON
    said: Path

    @property
    def status(self) -> JSON:
        wire = self.job
        kind = kind_of_api_version(KINDS, wire["apiVersion"], wire["kind"])
        assert kind is not None
        key = ObjectKey("default", wire["metadata"]["name"])
        stored = self.running.cluster.server.storage.get(kind.resource, key)
        assert stored is not None
        return stored.decoded(kind.resource).get("status") or {}

    async def reached(self, phase: str) -> JSON:
        async with asyncio.timeout(25):
            while self.status.get("phase") != phase:
                self.history.changed.clear()
                await self.history.changed.wait()
        return self.status

    def told(self, role: str) -> JSON:
        """Return the environment of a role's process."""
        found: JSON = json.loads((self.said / f"{role}.json").read_text())
        return found


def containers(wire: Any) -> Iterator[JSON]:
    """Find the containers in a manifest of any form."""
    if isinstance(wire, Mapping):
        yield from wire.get("containers") or ()
    parts = wire.values() if isinstance(wire, Mapping) else wire if isinstance(wire, list) else ()
    for part in parts:
        yield from containers(part)


def environment(prefix: Path, manifest: JSON) -> Path:
    """Create the replacement of a manifest's images; return the folder of its output."""
    said = prefix / "said"
    program = PLAY.format(python=sys.executable, said=str(said))
    files = {prefix / "bin" / "entrypoint": program}
    for container in containers(manifest):
        if script := container.get("args"):
            files[prefix / container["workingDir"].lstrip("/") / script[0]] = program
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
    (prefix / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    said.mkdir()
    return said


@asynccontextmanager
async def staged(name: str, prefix: Path, *, stay: bool = False) -> AsyncIterator[RunningSample]:
    manifest: JSON = yaml.safe_load(SAMPLES[name])
    said = environment(prefix, manifest)
    if stay:
        (said / "stay").touch()
    kind = kind_of_api_version(KINDS, manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    images = {container["image"]: prefix for container in containers(manifest)}
    async with embedded_control_plane(KINDS, ClusterOptions(images)) as running:
        history = History(running.cluster.server)
        job = await running.client.create(kind.resource, "default", manifest, JSON)
        yield RunningSample(running, history, job, said)


def children(stage: RunningSample) -> tuple[int, int, int]:
    """Return the numbers of created services and pods, and of pods to keep."""
    writes = stage.history.writes()
    pods = stage.running.cluster.server.storage.objects(PODS, "default")
    left = [pod for pod in pods if pod.meta.deletion_timestamp is None]
    return writes["create", "services"], writes["create", "pods"], len(left)


def replicas(status: JSON) -> dict[str, JSON]:
    """Return the number of replicas by type and state."""
    return {
        (entry.get("mx_replica_type") or entry["replicaType"]).lower(): entry["ReplicasStates"]
        for entry in status.get("dlctl", status)["replicaStatuses"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
async def test_sample_runs_to_its_end_unchanged(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        status = await stage.reached("Done")
        isolated = stage.running.cluster.network.isolated
        assert status["state"] == "Succeeded", status
        counts = replicas(status)
        assert counts["scheduler"] == {"Succeeded": 1}
        # The others may end a moment later than the scheduler, which ends the job.
        assert all(counts[role] in ({"Running": 1}, {"Succeeded": 1}) for role in ROLES)
        assert "failure" not in status
        assert "restarts" not in status
        assert {str(m.replica): n for m, n in stage.history.created.items()} == {
            f"{role}-0": 1 for role in ROLES
        }
        assert not stage.history.violations
        assert children(stage) == CHILDREN[stage.job["apiVersion"]]

    told = {role: stage.told(role) for role in ROLES}
    scheduler = told["scheduler"]["name"]
    assert scheduler.startswith(f"{stage.job['metadata']['name']}-scheduler-")
    for role, container in zip(ROLES, containers(stage.job), strict=True):
        assert told[role]["args"] == container.get("args", [])[1:]
        assert told[role]["cwd"].endswith(container.get("workingDir", ""))
        assert told[role]["env"] == {
            "DMLC_ROLE": role,
            "DMLC_PS_ROOT_URI": scheduler if isolated else "127.0.0.1",
            "DMLC_PS_ROOT_PORT": "9000",
            "DMLC_NUM_SERVER": "1",
            "DMLC_NUM_WORKER": "1",
            "DMLC_USE_KUBERNETES": "1",
        }
    assert (stage.said / "peers").read_text() == "server worker done"


async def writes_in(name: str, prefix: Path, seconds: float) -> Counter[tuple[str, str]]:
    """Return the controller's writes over some time for a job whose processes all run."""
    async with staged(name, prefix, stay=True) as stage:
        await stage.reached("Running")
        async with asyncio.timeout(20):
            # The last but one status: events and the last pod's readiness come after the phase.
            while replicas(stage.status) != {role: {"Running": 1} for role in ROLES}:
                stage.history.changed.clear()
                await stage.history.changed.wait()
        await asyncio.sleep(0.5)
        before = stage.history.writes()
        await asyncio.sleep(seconds)
        assert stage.status["phase"] == "Running", stage.status
        return stage.history.writes() - before


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SAMPLES)[:1])
async def test_running_job_of_real_processes_causes_no_writes(name: str, tmp_path: Path) -> None:
    assert not await writes_in(name, tmp_path, 5)


@pytest.mark.soak
@pytest.mark.timeout(90)
@pytest.mark.parametrize("name", SAMPLES)
async def test_job_of_real_processes_causes_no_writes_for_half_a_minute(
    name: str, tmp_path: Path
) -> None:
    assert not await writes_in(name, tmp_path, 30)
