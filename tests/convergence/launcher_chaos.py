"""MPIJobs whose users do as they like while launchers, API server and controller fail."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from dlctl.api.meta import BATCH_JOBS, PODS
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import kind_of
from tests.convergence.cases import Kill, of_lists, of_requests, of_watches
from tests.convergence.runs import COMPACTED, moment, quiet
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, start_cluster

JSON = dict[str, Any]
Act = Callable[["Play"], Awaitable[None]]
MPI: Final = kind_of("kubeflow.org/v1", "MPIJob")
# The version of requests; v1 is the stored one.
MPIJOBS: Final = attrs.evolve(MPI.resource, version="v2beta1")
JOB: Final = "pi"
LAUNCHER: Final = "pi-launcher"
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
_RESOURCES: Final = ("", "pods", "services", "jobs.batch", "configmaps", "secrets", "events")
_MAX_RETRIES: Final = 100


@attrs.define
class Play:
    """One job and what is done to it; at most one launcher may run at a time."""

    cluster: ClusterHarness
    dice: random.Random
    workers: int
    launchers_at_once: int = 0

    def pods(self, role: str, phase: str = "Running") -> list[JSON]:
        return [
            pod
            for pod in self.cluster.objects(PODS)
            if pod["metadata"]["labels"].get("training.kubeflow.org/job-role") == role
            and pod["status"].get("phase") == phase
        ]

    def watch(self, change: StorageEvent) -> None:
        if change.table == table_of(PODS):
            running = len(self.pods("launcher"))
            self.launchers_at_once = max(self.launchers_at_once, running)

    async def change(self, spec: JSON) -> None:
        await self.cluster.user.patch(MPIJOBS, self.cluster.key(JOB), {"spec": spec})

    def is_true(self, type_: str) -> bool:
        stated = self.cluster.status(JOB).get("conditions") or ()
        return any(c["type"] == type_ and c["status"] == "True" for c in stated)


async def run_chaos(seed: int) -> None:
    """Disturb a job, let its launcher succeed, and check what is left."""
    dice = random.Random(seed)
    policy = {"cleanPodPolicy": dice.choice(("All", "Running")), "backoffLimit": _MAX_RETRIES}
    creation = dice.choice(("AtStartup", "WaitForWorkersReady"))
    job = mpi_job(2, policy={**policy, "suspend": dice.random() < 0.3})
    job["spec"]["launcherCreationPolicy"] = creation
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    async with start_cluster(kinds=[MPI], options=COMPACTED.options) as cluster:
        await cluster.start_job_controller()
        await cluster.submit(job)
        play = Play(cluster, dice, 2)
        cluster.server.storage.observers.append(play.watch)
        async with asyncio.TaskGroup() as group:
            group.create_task(_arm(play))
            group.create_task(_act(play))
            await _work_through_kills(play)
        await play.change({"runPolicy": {"suspend": False}})
        await cluster.until(lambda: play.is_true("Running") and _is_whole(play))
        await _finish(play, 0)
        await cluster.until(lambda: cluster.phase(JOB) == "Done" and not play.pods("worker"))
        _check_end(play)
        written = await quiet(cluster, COMPACTED.rest_s)
        cluster.start()
        await asyncio.sleep(COMPACTED.rest_s)
        more = cluster.history.writes() - written
        assert not more, f"a new controller finds something to write: {more}"


def _is_whole(play: Play) -> bool:
    return len(play.pods("worker")) == play.workers and len(play.pods("launcher")) == 1


def _check_end(play: Play) -> None:
    assert play.is_true("Succeeded"), play.cluster.dump()
    assert play.launchers_at_once == 1
    status = play.cluster.status(JOB)
    assert status["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert "active" not in status["replicaStatuses"]["Launcher"]


async def _arm(play: Play) -> None:
    dice, faults = play.dice, play.cluster.server.faults
    for _ in range(dice.randint(0, 15)):
        await asyncio.sleep(dice.uniform(0, 1.5))
        faults.add(_fault(dice))
    await asyncio.sleep(COMPACTED.faults_s)
    faults.clear()


def _fault(dice: random.Random) -> Fault:
    verb, kinds = dice.choice(_VERBS), {"watch": of_watches, "list": of_lists}
    kind = dice.choice(list(kinds.get(verb, of_requests)(dice)))
    where: JSON = {"verb": verb, "resource": dice.choice(_RESOURCES), "times": dice.randint(1, 3)}
    return Fault(user_agent="dlctl", **where, **kind)


async def _act(play: Play) -> None:
    acts: list[Act] = [_suspend, _resume, _delete_launcher, _delete_worker, _scale, _fail, _fail]
    for _ in range(play.dice.randint(2, 8)):
        await asyncio.sleep(play.dice.uniform(0.2, 4))
        try:
            await play.dice.choice(acts)(play)
        except (ConflictError, NotFoundError):
            # It was gone, or about to change by itself.
            continue


async def _suspend(play: Play) -> None:
    await play.change({"runPolicy": {"suspend": True}})


async def _resume(play: Play) -> None:
    await play.change({"runPolicy": {"suspend": False}})


async def _delete_launcher(play: Play) -> None:
    key = play.cluster.key(LAUNCHER)
    await play.cluster.user.delete(BATCH_JOBS, key, propagation="Foreground")


async def _delete_worker(play: Play) -> None:
    await play.cluster.user.delete(PODS, play.cluster.key("pi-worker-0"))


async def _scale(play: Play) -> None:
    play.workers = play.dice.randint(1, 4)
    await play.change({"mpiReplicaSpecs": {"Worker": {"replicas": play.workers}}})


async def _fail(play: Play) -> None:
    await _finish(play, play.dice.choice((1, 137)))


async def _finish(play: Play, code: int) -> None:
    for pod in play.pods("launcher"):
        if "deletionTimestamp" not in pod["metadata"]:
            await play.cluster.node.finish(pod["metadata"]["uid"], code)


async def _work_through_kills(play: Play) -> None:
    for _ in range(play.dice.randint(0, 3)):
        controller = play.cluster.start()
        kill = Kill(play.dice.randint(0, 40), play.dice.randint(0, 30), play.dice.uniform(0, 3))
        await moment(play.cluster, kill, COMPACTED.faults_s)
        await controller.kill()
        await asyncio.sleep(kill.down_s)
    play.cluster.start()
