"""Jobs on nodes that fall silent, drain, shut down, go and come back, while all else fails too.

In the end each job runs on nodes that are there, and succeeds. A pod is only replaced if something
has ended it, or if its job has restarted as a whole.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.kube.errors import ConflictError, NotFoundError
from tests.builders import bare_job, kind_of, training_job
from tests.convergence.random_faults import delay_writes, inject_faults, kill_controllers
from tests.convergence.runs import COMPACTED, check_rest
from tests.support.fake_nodes import FakeNodes
from tests.support.harness import ClusterHarness, start_cluster

Act = Callable[["Play"], Awaitable[None]]
JOB: Final = "placed"
_POD_COUNT: Final = 3
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "nodes", "events")
_FORCE_AFTER_S: Final = 20.0
OPTIONS: Final = attrs.evolve(
    COMPACTED.options,
    force_delete_after_s=_FORCE_AFTER_S,
    max_infrastructure_restarts_per_hour=0,
)
_DRAIN_TAINTS: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "maintenance")


@attrs.define
class Play:
    """One job, and the nodes of its cluster."""

    cluster: ClusterHarness
    dice: random.Random
    nodes: FakeNodes

    def running(self) -> list[JSON]:
        """Return the pods that run on nodes which answer."""
        return [
            pod
            for pod in self.cluster.objects(PODS)
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and pod["spec"]["nodeName"] not in self.nodes.silent
        ]

    def is_whole(self) -> bool:
        return len(self.running()) == len(self.cluster.objects(PODS)) == _POD_COUNT


async def run_chaos(seed: int) -> None:
    """Disturb nodes, let all replicas succeed, and check what is left."""
    dice = random.Random(seed)
    job, restarts_as_whole = _manifest(dice)
    kind = kind_of(job["apiVersion"], job["kind"])
    async with start_cluster(kinds=[kind], options=OPTIONS) as cluster:
        nodes = FakeNodes(cluster, dice)
        await nodes.add("node-0", "node-1", "node-2", "node-3")
        await cluster.submit(job)
        play = Play(cluster, dice, nodes)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(disturb_nodes(play))
            group.create_task(delay_writes(cluster, dice))
            await kill_controllers(cluster, dice)
        await cluster.until(lambda: cluster.phase(JOB) == "Running" and play.is_whole())
        await cluster.settled()
        assert play.is_whole(), cluster.dump()
        if not restarts_as_whole:
            _check_replacements(play)
        for pod in play.running():
            await cluster.node.finish(pod["metadata"]["uid"])
        await cluster.until(lambda: cluster.phase(JOB) == "Done")
        await cluster.settled()
        # dl-operator's jobs keep theirs.
        kept = _POD_COUNT if isinstance(job["spec"], list) else 0
        assert len(cluster.pods()) == kept, cluster.dump()
        assert not cluster.history.violations
        assert cluster.condition("Succeeded", JOB), cluster.dump()
        await check_rest(cluster, COMPACTED.rest_s)


def _manifest(dice: random.Random) -> tuple[JSON, bool]:
    """Return a job, and whether a failure can restart all of it."""
    if dice.random() < 0.3:
        job = bare_job("MXJob", JOB, scheduler=1, server=1, worker=1)
        for entry in job["spec"]:
            entry["template"]["spec"]["restartPolicy"] = "Never"
        return job, False
    job = training_job("PyTorchJob", JOB, Master=1, Worker=_POD_COUNT - 1)
    policy: JSON = {"cleanPodPolicy": "All"}
    restarts_as_whole = dice.random() < 0.5
    if restarts_as_whole:
        policy["failurePolicy"] = {"maxRestarts": 1000}
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = dice.choice(("ExitCode", "OnFailure"))
    job["spec"]["runPolicy"] = policy
    return job, restarts_as_whole


def _check_replacements(play: Play) -> None:
    """Check that each replacement and each restart that was counted has had a cause."""
    created = sum(play.cluster.history.created.values())
    assert created - _POD_COUNT <= len(play.nodes.harmed), play.cluster.dump()
    status = play.cluster.status(JOB)
    restarts = (status.get("dlctl") or status).get("restarts") or {}
    failures = sum(one.get("failures") or 0 for one in restarts.values())
    assert failures <= len(play.nodes.harmed), play.cluster.dump()


async def disturb_nodes(play: Play) -> None:
    """Disturb nodes one after the other or together; two of them stay."""
    async with asyncio.TaskGroup() as group:
        for _ in range(play.dice.randint(2, 6)):
            await asyncio.sleep(play.dice.uniform(0.2, 6))
            group.create_task(_try(play, play.dice.choice(_ACTS)))


async def _try(play: Play, act: Act) -> None:
    try:
        await act(play)
    except (ConflictError, NotFoundError, KeyError):
        # It was gone, or about to change by itself.
        return


def _pick_node(play: Play) -> str:
    """Return a node that takes pods, if two others do; one with pods if there is one."""
    if len(play.nodes.open) <= 2:
        raise KeyError("node")
    used = [name for name in play.nodes.open if play.nodes.pods(name)]
    return play.dice.choice(used or play.nodes.open)


async def _lose(play: Play) -> None:
    """Let a node fall silent for a while or for good."""
    nodes, dice, name = play.nodes, play.dice, _pick_node(play)
    await nodes.fall_silent(name, phase=dice.choice(("", "", "Unknown")))
    await asyncio.sleep(dice.choice((0.0, 3.0, 15.0)))
    if dice.random() < 0.8:
        await nodes.evict(name)
    await asyncio.sleep(dice.choice((0.0, 3.0, 60.0)))
    match dice.choice(("back", "off", "gone", "silent")):
        case "off":
            await nodes.evict(name)
            await nodes.put_out_of_service(name)
        case "gone":
            await nodes.remove(name)
        case "silent":
            await nodes.evict(name)
        case _:
            await nodes.come_back(name)


async def _drain(play: Play) -> None:
    nodes, dice, name = play.nodes, play.dice, _pick_node(play)
    await nodes.drain(name, dice.choice(_DRAIN_TAINTS))
    await asyncio.sleep(dice.choice((0.0, 2.0, 20.0)))
    if dice.random() < 0.8:
        await nodes.evict(name, "EvictionByEvictionAPI")
        await asyncio.sleep(dice.choice((0.0, 2.0)))
    await (nodes.remove(name) if dice.random() < 0.5 else nodes.come_back(name))


async def _reboot(play: Play) -> None:
    name = _pick_node(play)
    await play.nodes.shut_down(name)
    await asyncio.sleep(play.dice.choice((0.0, 5.0, 30.0)))
    await play.nodes.come_back(name)


async def _preempt(play: Play) -> None:
    if running := play.running():
        await play.nodes.disrupt(play.dice.choice(running), "PreemptionByScheduler")


async def _fail(play: Play) -> None:
    if running := play.running():
        uid = play.dice.choice(running)["metadata"]["uid"]
        play.nodes.harmed.add(uid)
        await play.cluster.node.finish(uid, play.dice.choice((137, 143)))


_ACTS: Final[Sequence[Act]] = (_lose, _lose, _lose, _drain, _drain, _reboot, _preempt, _fail)
