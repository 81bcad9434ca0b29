"""A controller in its own process: killed with -9 at critical moments, and stopped gracefully.

The cluster outlives it, like a real one. Unpersisted state of the controller is lost.
"""

import asyncio
import os
import random
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.informers.informer import Informer
from dlctl.kube import config
from dlctl.kube.client import Client
from tests.builders import kind_of, mxjob

LIMIT_S = 40
KEY = ObjectKey("default", "linear")

# Replicas wait for files, so that the test decides when each continues.
WAIT = "until [ -e {gates}/end ]; do sleep 0.05; done"
LOST_ONCE = "if mv {gates}/lose {gates}/lost 2>/dev/null; then exit 143; fi"


def job(gates: Path) -> JSON:
    """Return a job whose worker 1 fails once; it ends when the file ``end`` exists."""
    patient = WAIT.format(gates=gates)
    unlucky = patient.replace("do ", f"do {LOST_ONCE.format(gates=gates)}; ")
    programs = {
        "SCHEDULER": patient,
        "SERVER": "exec sleep 600",
        "WORKER": f"case $HOSTNAME in *-1) {unlucky};; *) {patient};; esac",
    }
    manifest = mxjob()
    manifest["metadata"] = {"name": KEY.name}
    for entry in manifest["spec"]["replicaSpecs"]:
        command = ["sh", "-c", programs[entry["mxReplicaType"]]]
        container = {"name": "mxnet", "image": "any", "command": command}
        entry["template"] = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return manifest


@attrs.define(eq=False)
class KillScenario:
    """The cluster with the job, and one controller at a time."""

    client: Client
    environment: dict[str, str]
    gates: Path
    pods: Informer[Pod]
    created: dict[str, str] = attrs.field(factory=dict)
    duplicates: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.pods.add_handler(self._notice)

    def _notice(self, change: Change[Pod]) -> None:
        """Record every pod, and every moment with two pods of one replica."""
        if change.new is None:
            return
        self.created.setdefault(change.new.metadata.uid, change.new.metadata.name)
        there = Counter(_replica(pod.metadata.name) for pod in self.pods.store)
        self.duplicates += [replica for replica, count in there.items() if count > 1]

    @property
    def pod_counts(self) -> Counter[str]:
        """Return the number of pods that each replica has had."""
        return Counter(map(_replica, self.created.values()))

    @asynccontextmanager
    async def controller(self) -> AsyncIterator[Process]:
        """Run a controller; it is killed with -9 at the end of the block."""
        process = await _dlctl(
            *("controller", "--bind-address", "", "--restart-backoff", "0.3"),
            environment=self.environment,
        )
        try:
            yield process
        finally:
            await _kill(process)

    async def status(self) -> JSON:
        obj = await self.client.get(kind_of().resource, KEY, JSON)
        return dict(obj.get("status") or {})

    async def until(self, holds: Callable[[JSON], object]) -> JSON:
        """Wait until the job's status meets a condition, and return it."""
        async with asyncio.timeout(LIMIT_S):
            while not holds(status := await self.status()):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)
        return status

    def open(self, gate: str) -> None:
        (self.gates / gate).touch()


@asynccontextmanager
async def kill_scenario(tmp_path: Path) -> AsyncIterator[KillScenario]:
    kubeconfig = tmp_path / "kubeconfig"
    gates = tmp_path / "gates"
    gates.mkdir()
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TMPDIR": str(tmp_path)}
    up = await _dlctl(
        "up", "--no-controller", "--kubeconfig", str(kubeconfig), environment=environment
    )
    try:
        assert up.stdout is not None
        await up.stdout.readuntil(b"Ctrl-C")
        async with Client(await config.load(str(kubeconfig))) as client:
            pods = Informer(client, PODS, Pod)
            watching = asyncio.create_task(pods.run())
            await client.create(kind_of().resource, "default", job(gates), JSON)
            yield KillScenario(client, environment, gates, pods)
            watching.cancel()
            await asyncio.wait([watching])
        up.send_signal(signal.SIGINT)
        assert await up.wait() == 0
    finally:
        await _kill(up)


async def _dlctl(*arguments: str, environment: dict[str, str]) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dlctl", *arguments),
        env=environment,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE if arguments[0] == "controller" else DEVNULL,
    )


async def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.communicate()


def _replica(pod: str) -> str:
    found = re.fullmatch(r"linear-(\w+)-\w+-(\d+)", pod)
    assert found is not None, pod
    return "-".join(found.groups())


def lost(status: JSON) -> bool:
    return bool(status.get("restarts", {}).get("worker-1"))


async def assert_ends_in_order(process: Process) -> None:
    """Stop a controller: it logs that, without errors, and exits."""
    process.terminate()
    async with asyncio.timeout(LIMIT_S):
        _, stderr = await process.communicate()
    lines = stderr.decode().splitlines()
    assert process.returncode == 0, lines
    assert "workers stopped" in lines[-1]
    assert not [line for line in lines if "error" in line or "Traceback" in line]


async def assert_ended_well(scenario: KillScenario) -> None:
    status = await scenario.until(lambda status: status.get("phase") == "Done")
    assert status["state"] == "Succeeded", status
    assert "failure" not in status
    assert status["restarts"]["worker-1"]["failures"] == 1
    assert set(status["restarts"]) == {"worker-1"}
    assert scenario.pod_counts == {"scheduler-0": 1, "server-0": 1, "worker-0": 1, "worker-1": 2}
    assert not scenario.duplicates
    async with asyncio.timeout(LIMIT_S):
        while scenario.pods.store:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(90)
async def test_job_survives_kills_of_its_controller_at_critical_moments(
    tmp_path: Path,
) -> None:
    async with kill_scenario(tmp_path) as stage:
        async with stage.controller():
            await stage.until(lambda _: stage.created)
        async with stage.controller():
            await stage.until(lambda status: status.get("phase") == "Running")
            stage.open("lose")
            await stage.until(lost)
        async with stage.controller() as process:
            await stage.until(lambda _: stage.pod_counts["worker-1"] == 2)
            # Its handlers of signals are installed before it says anything.
            assert process.stderr is not None
            await process.stderr.readline()
            await assert_ends_in_order(process)
        # The scheduler, which is the chief, and all workers end without a controller.
        stage.open("end")
        async with stage.controller():
            await assert_ended_well(stage)


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(4))
async def test_job_survives_kills_of_its_controller_at_any_moment(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)

    async def kill_some(stage: KillScenario) -> None:
        for _ in range(3):
            async with stage.controller() as process:
                assert process.stderr is not None
                # It has started; its whole work takes some tenths of a second.
                await process.stderr.readline()
                await asyncio.sleep(chance.uniform(0, 0.4))

    async with kill_scenario(tmp_path) as stage:
        await kill_some(stage)
        async with stage.controller():
            await stage.until(lambda status: status.get("phase") == "Running")
            await stage.until(lambda _: len(stage.created) == 4)
        stage.open("lose")
        await kill_some(stage)
        async with stage.controller():
            await stage.until(lambda _: stage.pod_counts["worker-1"] == 2)
        stage.open("end")
        await kill_some(stage)
        async with stage.controller():
            await assert_ended_well(stage)
