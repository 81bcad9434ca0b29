"""TrainingJobs that are edited, suspended and deprived of children while everything else fails.

In the end, each has as many workers as its spec says, and all that a TrainingJob needs.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import attrs

from dlctl.api.meta import PODS, SERVICES
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.kube.errors import ConflictError, NotFoundError
from tests.convergence.elastic_cases import JOB, incidents_of
from tests.convergence.elastic_chaos import arm_faults
from tests.convergence.elastic_runs import check_rest
from tests.convergence.random_faults import SKEWS, delay_writes, kill_controllers
from tests.convergence.runs import COMPACTED
from tests.support.elastic_harness import KIND, ElasticHarness, start_elastic_cluster

Act = Callable[["Play"], Awaitable[None]]
_LAUNCHER: Final = f"{JOB}-launcher"
# The highest number of workers that an edit asks for.
MOST_IN_SPEC: Final = 4


@attrs.define
class Play:
    """One job and what is done to it."""

    stage: ElasticHarness
    dice: random.Random
    # The last number of workers in the spec, and the limit of requests.
    replicas: int = 2
    max_replicas: int = 6
    scaler_count: int = 0
    # The scalers that nobody deletes.
    kept_scalers: list[str] = attrs.field(factory=list)

    async def submit(self) -> None:
        """Create the job, which outlives every failure."""
        policy = self.dice.choice(("OnFailure", "Never"))
        await self.stage.submit(
            worker={
                "restartPolicy": "Always",
                "replicas": self.replicas,
                "maxReplicas": self.max_replicas,
            },
            launcher={"restartPolicy": "OnFailure"} if policy == "Never" else {},
            restartPolicy=policy,
            backoffLimit=1000,
            suspend=self.dice.random() < 0.2,
            launcherAttachMode=self.dice.choice(("ssh", "kubexec")),
        )
        self.stage.launchers.disconnects_s = self.dice.choice((0.0, 2.0))
        self.stage.launchers.faults = list(incidents_of(self.dice))

    async def set_suspended(self, value: bool) -> None:
        await self.stage.edit({"spec": {"suspend": value}})

    async def set_replicas(self, count: int) -> None:
        self.replicas = count
        await self.stage.edit({"spec": {"etReplicaSpecs": {"worker": {"replicas": count}}}})


async def run_chaos(seed: int) -> None:
    """Disturb a job, set its number of workers, and check what it has."""
    dice = random.Random(seed)
    async with start_elastic_cluster(COMPACTED.options, gently=False) as stage:
        play = Play(stage, dice)
        await play.submit()
        async with asyncio.TaskGroup() as group:
            group.create_task(arm_faults(stage, dice))
            group.create_task(disturb_job(play))
            group.create_task(delay_writes(stage.cluster, dice))
            await stage.cluster.kill_all()
            await kill_controllers(stage.cluster, dice, ahead_s=SKEWS)
        await check_end(play)


async def check_end(play: Play) -> None:
    """Set the number of workers, let the job succeed, and check what it has before and after."""
    stage = play.stage
    await play.set_suspended(False)
    await _until_whole(play)
    # The number of workers counts when it changes.
    others = [n for n in range(1, MOST_IN_SPEC + 1) if n != play.replicas]
    await play.set_replicas(play.dice.choice(others))
    await stage.cluster.until(lambda: len(stage.members()) == play.replicas)
    await _until_whole(play)
    missing = _missing(play)
    assert not missing, f"{missing} of {JOB} are missing"
    for name in play.kept_scalers:
        await stage.scaler_result(name)
    await check_rest(stage)
    await stage.end(_LAUNCHER, 0)
    await stage.cluster.ended(phase="Succeeded")
    await check_rest(stage)
    assert stage.cluster.status()["conditions"][-1]["type"] == "Succeeded"
    assert [pod["metadata"]["name"] for pod in stage.cluster.objects(PODS)] == [_LAUNCHER]


async def _until_whole(play: Play) -> None:
    stage = play.stage

    def is_whole() -> bool:
        if stage.cluster.phase() != "Running" or not stage.runs(_LAUNCHER):
            return False
        with suppress(AssertionError, ValueError, KeyError):
            return stage.is_consistent()
        return False

    await stage.cluster.until(is_whole)
    await stage.cluster.settled()
    assert is_whole(), f"hosts, files and pods differ:\n{stage.cluster.dump()}"


def _missing(play: Play) -> list[str]:
    """Return the resources of which the job has no object."""
    job = play.stage.cluster.job()
    attach = job["spec"]["launcherAttachMode"]
    return [
        resource.plural
        for resource in KIND.dependent_resources
        if not play.stage.cluster.owned(resource, job)
        and not (resource.plural == "secrets" and attach == "kubexec")
        and resource.plural != "podgroups"
    ]


async def disturb_job(play: Play) -> None:
    """Edit, suspend, scale and damage the job."""
    for _ in range(play.dice.randint(2, 9)):
        await asyncio.sleep(play.dice.uniform(0.1, 6))
        with suppress(ConflictError, NotFoundError):
            await play.dice.choice(_ACTS)(play)


async def _suspend(play: Play) -> None:
    await play.set_suspended(True)
    await asyncio.sleep(play.dice.choice((0.0, play.dice.uniform(0, 5))))
    await play.set_suspended(False)


async def _edit_replicas(play: Play) -> None:
    await play.set_replicas(play.dice.randint(1, MOST_IN_SPEC))


async def _edit_bounds(play: Play) -> None:
    policy = {"cleanPodPolicy": play.dice.choice(("All", "Running"))}
    await play.stage.edit({"spec": policy})


async def _scale(play: Play) -> None:
    name, count = f"s{play.scaler_count}", play.dice.randint(1, 2)
    play.scaler_count += 1
    if play.dice.random() < 0.5:
        await play.stage.scale(SCALE_OUTS, name, JOB, {"toAdd": {"count": count}})
    else:
        await play.stage.scale(SCALE_INS, name, JOB, {"toDelete": {"count": count}})
    if play.dice.random() < 0.4:
        await asyncio.sleep(play.dice.uniform(0, 5))
        for resource in (SCALE_INS, SCALE_OUTS):
            with suppress(NotFoundError):
                await play.stage.cluster.user.delete(resource, play.stage.cluster.key(name))
    else:
        play.kept_scalers.append(name)


async def _fail(play: Play) -> None:
    workers = [f"{JOB}-worker-{index}" for index in play.stage.workers()]
    running = [pod for pod in (_LAUNCHER, *workers) if play.stage.runs(pod)]
    if running:
        await play.stage.end(play.dice.choice(running), 137)


async def _delete_child(play: Play) -> None:
    cluster = play.stage.cluster
    dependents = sorted(KIND.dependent_resources, key=lambda one: one.plural)
    resource = play.dice.choice((PODS, PODS, SERVICES, *dependents))
    if found := cluster.owned(resource, cluster.job()):
        names = sorted(one["metadata"]["name"] for one in found)
        await cluster.user.delete(resource, cluster.key(play.dice.choice(names)))


_ACTS: Final[tuple[Act, ...]] = (
    _suspend, _edit_replicas, _edit_replicas, _edit_bounds, _scale, _scale, _fail, _fail,
    _delete_child, _delete_child,
)  # fmt: skip
