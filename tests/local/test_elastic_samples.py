"""Manifests of et-operator's users run unchanged: its README's session, with real sshds.

The image is not available: an environment with a horovodrun that logs in to the discovered hosts
replaces it. sshd changes its user, which requires root, and its directory.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, ObjectKey, Resource
from dlctl.cli.embedded.cluster_options import ClusterOptions
from dlctl.cli.embedded.control_plane import EmbeddedControlPlane, embedded_control_plane
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from tests.builders import KINDS, kind_of
from tests.support.history import History

FOLDER = Path(__file__).parents[2].parent / "shared" / "samples" / "et-operator"
SSHD = Path("/run/sshd")
RUNNABLE = os.geteuid() == 0 and SSHD.is_dir() and shutil.which("ssh") and shutil.which("sshd")
NAME = "elastic-training"
PREFIX = f"{NAME}-worker-"

pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the samples are not at hand"),
    pytest.mark.skipif(not RUNNABLE, reason=f"not root, no OpenSSH, or no {SSHD}"),
]

# Says whom it is logged in to, in as many words as it was started with; ends when told to. As the
# real one does, it keeps a session to each host that is listed, and dials again if one breaks off.
# It goes through to the sshd of each host once more, so that no start-up file of a shell has a say.
HOROVODRUN = """#!/bin/sh
echo "$@"
mkdir {sessions}
cd {sessions}
mkfifo silence
until [ -e {end} ]; do
  hosts=" $(sh /etc/edl/discover_hosts.sh | tr '\\n' ' ')"
  said=
  for host in $hosts; do
    name=${{host%:*}}
    if ! kill -0 "$(cat "$name.pid" 2>/dev/null)" 2>/dev/null; then
      ssh -W 127.0.0.1:22 "$name" <>silence >"$name.greeting" &
      echo $! >"$name.pid"
    fi
    case $(head -c 7 "$name.greeting") in
    SSH-2.0) said="$said $host" ;;
    esac
  done
  for pid in *.pid; do
    name=${{pid%.pid}}
    case $hosts in
    *" $name:"*) ;;
    *) kill "$(cat "$pid")"; rm "$name".* ;;
    esac
  done
  echo "trains on$said"
  sleep 0.1
done
"""


@attrs.frozen
class RunningSample:
    running: EmbeddedControlPlane
    history: History
    end: Path

    async def create(self, name: str, resource: Resource) -> JSON:
        manifest: JSON = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
        return await self.running.client.create(resource, "default", manifest, JSON)

    async def reached(self, resource: Resource, name: str, phase: str) -> JSON:
        await self.until(lambda: self.status(resource, name).get("phase") == phase)
        return self.status(resource, name)

    def status(self, resource: Resource, name: str) -> JSON:
        stored = self.running.cluster.server.storage.get(resource, ObjectKey("default", name))
        assert stored is not None
        found: JSON = stored.decoded(resource).get("status") or {}
        return found

    def workers(self, resource: Resource) -> list[str]:
        """Return the indexes in the names of such objects of the job's workers."""
        stored = self.running.cluster.server.storage.objects(resource, "default")
        names = sorted(one.key.name for one in stored)
        return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(25):
            while not holds():
                self.history.changed.clear()
                await self.history.changed.wait()

    async def trains_on(self, *workers: int) -> None:
        """Return when the launcher's logins were last exactly these workers."""
        expected = "".join(f" {PREFIX}{index}:1" for index in workers)
        async with asyncio.timeout(25):
            # There is no notification of a written line.
            while not (await self.log()).endswith(f"trains on{expected}\n"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def log(self) -> str:
        path = f"/api/v1/namespaces/default/pods/{NAME}-launcher/log"
        found = await self.running.client.get_raw(path, {"container": "mnist-elastic"})
        return found.decode()


@asynccontextmanager
async def staged(prefix: Path) -> AsyncIterator[RunningSample]:
    end = prefix / "end"
    program = prefix / "bin" / "horovodrun"
    program.parent.mkdir(parents=True)
    program.write_text(HOROVODRUN.format(end=end, sessions=prefix / "sessions"))
    program.chmod(0o755)
    sample = yaml.safe_load((FOLDER / "training_job.yaml").read_text())
    (container,) = sample["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"]["containers"]
    async with embedded_control_plane(
        KINDS, ClusterOptions({container["image"]: prefix}, hand_out_gpus=False)
    ) as running:
        if not running.cluster.network.isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")
        yield RunningSample(running, History(running.cluster.server), end)


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_documented_elastic_session_runs_unchanged(tmp_path: Path) -> None:
    resource = kind_of("kai.alibabacloud.com/v1alpha1", "TrainingJob").resource
    async with staged(tmp_path) as stage:
        await stage.create("training_job", resource)
        status = await stage.reached(resource, NAME, "Running")
        assert status["currentWorkers"] == status["targetWorkers"] == [f"{PREFIX}0", f"{PREFIX}1"]
        await stage.trains_on(0, 1)

        for sample, scalers, pods, left in (
            ("scale_in_count", SCALE_INS, {"toDeletePods": [1]}, (0,)),
            ("scale_out", SCALE_OUTS, {"addPods": [1, 2]}, (0, 1, 2)),
            ("scale_in_pod", SCALE_INS, {"toDeletePods": [1]}, (0, 2)),
        ):
            scaler = await stage.create(sample, scalers)
            status = await stage.reached(scalers, scaler["metadata"]["name"], "ScaleSucceeded")
            ((field, indexes),) = pods.items()
            assert status[field] == [f"{PREFIX}{index}" for index in indexes]
            assert stage.workers(PODS) == [str(index) for index in left]
            await stage.trains_on(*left)

        status = await stage.reached(resource, NAME, "Running")
        assert "currentScaler" not in status
        stage.end.touch()
        status = await stage.reached(resource, NAME, "Succeeded")
        assert (await stage.log()).startswith("--log-level DEBUG --verbose -np 2 --min-np 1")
        await stage.until(lambda: not stage.workers(PODS) and not stage.workers(SERVICES))
        assert not stage.history.violations
