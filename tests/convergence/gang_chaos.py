"""Jobs that restart as a whole while their pods, the API server and the controller fail."""

import asyncio
import random
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import kind_of, training_job
from tests.convergence.random_faults import inject_faults, kill_controllers
from tests.convergence.runs import COMPACTED, check_rest
from tests.support.harness import ClusterHarness, start_cluster

PYTORCH: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
ATTEMPT_LABEL: Final = "dlctl.dev/restart-attempt"
JOB: Final = "gang"
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "events")
_POD_COUNT: Final = 4


@attrs.define
class Play:
    """One job and what is done to it; ``violations`` lists attempts that were there together."""

    cluster: ClusterHarness
    dice: random.Random
    is_blocking: bool
    violations: list[str] = attrs.field(factory=list)
    seen: set[int] = attrs.field(factory=set)

    def pods(self) -> list[JSON]:
        return self.cluster.objects(PODS)

    def running(self) -> list[JSON]:
        return [
            pod
            for pod in self.pods()
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def attempts(self) -> set[int]:
        return set(map(_attempt, self.pods()))

    def watch(self, change: StorageEvent) -> None:
        if change.table != table_of(PODS):
            return
        present = self.attempts()
        if (
            change.new is not None
            and change.old is None
            and _attempt(change.new.decoded(PODS)) < max(self.seen, default=0)
        ):
            self.violations.append(f"revision {change.revision}: an earlier attempt is back")
        if self.is_blocking and len(present) > 1:
            self.violations.append(f"revision {change.revision}: attempts {present} at once")
        self.seen |= present

    def is_whole(self) -> bool:
        return len(self.running()) == _POD_COUNT and len(self.attempts()) == 1


def _attempt(pod: JSON) -> int:
    return int(pod["metadata"]["labels"][ATTEMPT_LABEL])


async def run_chaos(seed: int) -> None:
    """Disturb a job, let all of its replicas succeed, and check what is left."""
    dice = random.Random(seed)
    strategy = dice.choice(("BlockingRecreate", "BlockingRecreate", "Recreate"))
    policy: JSON = {"maxRestarts": 1000, "restartStrategy": strategy}
    if dice.random() < 0.3:
        policy["rules"] = [{"action": "RestartReplica", "targetReplicas": ["Worker"]}]
    job = training_job("PyTorchJob", JOB, Master=1, Worker=_POD_COUNT - 1)
    job["spec"]["runPolicy"] = {
        "failurePolicy": policy,
        "cleanPodPolicy": dice.choice(("All", "None")),
    }
    async with start_cluster(kinds=[PYTORCH], options=COMPACTED.options) as cluster:
        await cluster.submit(job, script=None)
        play = Play(cluster, dice, is_blocking=strategy == "BlockingRecreate")
        cluster.server.storage.observers.append(play.watch)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(_act(play))
            await kill_controllers(cluster, dice)
        await cluster.until(lambda: cluster.phase(JOB) == "Running" and play.is_whole())
        await _finish_all(play)
        await cluster.until(lambda: cluster.phase(JOB) == "Done")
        _check_end(play)
        await check_rest(cluster, COMPACTED.rest_s)


def _check_end(play: Play) -> None:
    assert not play.violations
    assert not play.cluster.history.violations
    status = play.cluster.status(JOB)
    assert status["conditions"][-1]["type"] == "Succeeded", play.cluster.dump()
    own = status["dlctl"]
    assert own.get("jobRestarts", 0) == max(play.seen)


async def _act(play: Play) -> None:
    acts = [_fail, _fail, _fail, _delete, _suspend]
    for _ in range(play.dice.randint(2, 8)):
        await asyncio.sleep(play.dice.uniform(0.2, 6))
        try:
            await play.dice.choice(acts)(play)
        except (ConflictError, NotFoundError, KeyError):
            # It was gone, or about to change by itself.
            continue
    await _resume(play)


async def _fail(play: Play) -> None:
    running = play.running()
    for pod in play.dice.sample(running, min(len(running), play.dice.choice((1, 1, 2, 4)))):
        await play.cluster.node.finish(pod["metadata"]["uid"], play.dice.choice((1, 3, 137)))


async def _delete(play: Play) -> None:
    if running := play.running():
        name = play.dice.choice(running)["metadata"]["name"]
        await play.cluster.user.delete(PODS, play.cluster.key(name))


async def _suspend(play: Play) -> None:
    await _set_suspended(play, True)
    await asyncio.sleep(play.dice.uniform(0, 3))
    await _resume(play)


async def _resume(play: Play) -> None:
    await _set_suspended(play, False)


async def _set_suspended(play: Play, value: bool) -> None:
    body = {"spec": {"runPolicy": {"suspend": value}}}
    await play.cluster.user.patch(PYTORCH.resource, play.cluster.key(JOB), body)


async def _finish_all(play: Play) -> None:
    for pod in play.running():
        await play.cluster.node.finish(pod["metadata"]["uid"])
