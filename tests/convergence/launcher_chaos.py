"""MPIJobs whose users do as they like while launchers, API server and controller fail."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, PODS
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from dlctl.reconcilers.restart_attempts import RESTART_ATTEMPT
from tests.builders import kind_of
from tests.convergence.random_faults import inject_faults, kill_controllers
from tests.convergence.runs import COMPACTED, check_rest
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, start_cluster

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
    # The attempts whose pods and launchers' Jobs existed at the same time. A Job that is suspended
    # has no pods.
    attempts_at_once: set[frozenset[str]] = attrs.field(factory=set)

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
        if change.table in (table_of(PODS), table_of(BATCH_JOBS)):
            jobs = self.cluster.objects(BATCH_JOBS)
            active = [one for one in jobs if not one["spec"].get("suspend")]
            children = [*self.cluster.objects(PODS), *active]
            marks = (one["metadata"]["labels"].get(RESTART_ATTEMPT, "") for one in children)
            self.attempts_at_once.add(frozenset(marks))

    async def change(self, spec: JSON) -> None:
        await self.cluster.user.patch(MPIJOBS, self.cluster.key(JOB), {"spec": spec})

    def is_true(self, type_: str) -> bool:
        stated = self.cluster.status(JOB).get("conditions") or ()
        return any(c["type"] == type_ and c["status"] == "True" for c in stated)


async def run_chaos(seed: int, *, with_failure_policy: bool = False) -> None:
    """Disturb a job, let its launcher succeed, and check what is left."""
    dice = random.Random(seed)
    policy: JSON = {"cleanPodPolicy": dice.choice(("All", "Running"))}
    if with_failure_policy:
        rules = dice.choice(([], [{"action": "RestartReplica", "targetReplicas": ["Launcher"]}]))
        policy["failurePolicy"] = {"maxRestarts": _MAX_RETRIES, "rules": rules}
    else:
        policy["backoffLimit"] = _MAX_RETRIES
    creation = dice.choice(("AtStartup", "WaitForWorkersReady"))
    job = mpi_job(2, policy={**policy, "suspend": dice.random() < 0.3})
    job["spec"]["launcherCreationPolicy"] = creation
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    acts = [*_ACTS, *([_fail_worker] if with_failure_policy else [])]
    async with start_cluster(kinds=[MPI], options=COMPACTED.options) as cluster:
        await cluster.start_job_controller()
        await cluster.submit(job)
        play = Play(cluster, dice, 2)
        cluster.server.storage.observers.append(play.watch)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(_act(play, acts))
            await kill_controllers(cluster, dice)
        await play.change({"runPolicy": {"suspend": False}})
        await cluster.until(lambda: play.is_true("Running") and _is_whole(play))
        await _finish(play, 0)
        await cluster.until(lambda: cluster.phase(JOB) == "Done" and not play.pods("worker"))
        _check_end(play)
        await check_rest(cluster, COMPACTED.rest_s)


def _is_whole(play: Play) -> bool:
    children = [*play.cluster.objects(PODS), *play.cluster.objects(BATCH_JOBS)]
    if any("deletionTimestamp" in one["metadata"] for one in children):
        # What was deleted last is still to be replaced.
        return False
    return len(play.pods("worker")) == play.workers and len(play.pods("launcher")) == 1


def _check_end(play: Play) -> None:
    assert play.is_true("Succeeded"), play.cluster.dump()
    assert play.launchers_at_once == 1
    assert all(len(attempts) <= 1 for attempts in play.attempts_at_once), play.attempts_at_once
    status = play.cluster.status(JOB)
    assert status["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert "active" not in status["replicaStatuses"]["Launcher"]


async def _act(play: Play, acts: Sequence[Act]) -> None:
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


async def _fail_worker(play: Play) -> None:
    await _finish(play, 1, "worker")


async def _finish(play: Play, code: int, role: str = "launcher") -> None:
    for pod in play.pods(role)[:1]:
        if "deletionTimestamp" not in pod["metadata"]:
            await play.cluster.node.finish(pod["metadata"]["uid"], code)


_ACTS: Final[Sequence[Act]] = (
    _suspend, _resume, _delete_launcher, _delete_worker, _scale, _fail, _fail
)  # fmt: skip
