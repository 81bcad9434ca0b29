"""Jobs whose users edit, delete and create them again while pods, server and controller fail.

In the end each has what a new job with its last spec has, in a cluster where nothing fails.
"""

import asyncio
import difflib
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs
import yaml

from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.dialects.kind import Kind
from dlctl.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from tests.builders import kind_of, make_job, training_job
from tests.convergence.random_faults import (
    SKEWS,
    delay_writes,
    inject_faults,
    kill_controllers,
)
from tests.convergence.runs import COMPACTED, check_rest
from tests.support.harness import ClusterHarness, start_cluster

JSON = dict[str, Any]
Act = Callable[["Play"], Awaitable[None]]
JOB: Final = "edited"
_SERVICE: Final = "dlctl.dev/service"
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "configmaps", "events")
_REPLICAS: Final[dict[str, Sequence[JSON]]] = {
    "TFJob": ({"Worker": 2}, {"Chief": 1, "PS": 1, "Worker": 2}),
    "PyTorchJob": ({"Worker": 2}, {"Master": 1, "Worker": 2}),
    "PaddleJob": ({"Worker": 2}, {"Master": 1, "Worker": 2}),
    "XGBoostJob": ({"Master": 1, "Worker": 2},),
    "JAXJob": ({"Worker": 2},),
    "MPIJob": ({"Launcher": 1, "Worker": 2},),
    "MXJob": ({"Scheduler": 1, "Server": 1, "Worker": 2},),
}


@attrs.define
class Play:
    """One job and what is done to it."""

    cluster: ClusterHarness
    dice: random.Random
    kind: Kind
    manifest: JSON

    @property
    def field(self) -> str:
        return next(str(field) for field in self.manifest["spec"] if field.endswith("ReplicaSpecs"))

    async def change(self, spec: JSON) -> None:
        await self.cluster.user.patch(self.kind.resource, self.cluster.key(JOB), {"spec": spec})

    async def set_suspended(self, value: bool) -> None:
        await self.change({"runPolicy": {"suspend": value}})

    def owned(self, resource: Resource) -> list[JSON]:
        with suppress(LookupError):
            found = self.cluster.owned(resource, self.cluster.job(JOB))
            return sorted(found, key=lambda one: str(one["metadata"]["name"]))
        return []

    def pods(self) -> list[JSON]:
        """Return the running pods that are not being deleted."""
        return [
            pod
            for pod in self.owned(PODS)
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def is_whole(self) -> bool:
        job = make_job(self.cluster.job(JOB))
        wanted = {job.child_name(replica) for replica in job.replicas}
        running = {pod["metadata"]["name"] for pod in self.pods()}
        return running == wanted and len(self.owned(PODS)) == len(wanted)

    def resources(self) -> Iterator[Resource]:
        yield SERVICES
        yield from sorted(self.kind.dependent_resources, key=lambda one: one.plural)


async def run_chaos(seed: int) -> None:
    """Disturb a job, let its replicas succeed, and compare it with one that nobody disturbed."""
    dice = random.Random(seed)
    kind = kind_of("kubeflow.org/v1", dice.choice(tuple(_REPLICAS)))
    job = _manifest(dice, kind)
    resumes = dice.random() < 0.5
    async with start_cluster(kinds=[kind], options=COMPACTED.options) as cluster:
        await cluster.submit(job)
        play = Play(cluster, dice, kind, job)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(_act(play, _ACTS + ((_move_services,) if resumes else ())))
            group.create_task(_linger(play))
            group.create_task(delay_writes(cluster, dice))
            await kill_controllers(cluster, dice, ahead_s=SKEWS)
        if resumes:
            await play.set_suspended(True)
            await cluster.until(lambda: cluster.phase(JOB) == "Suspended" and not play.owned(PODS))
        await play.set_suspended(False)
        found = await _outcome(play, compare_pods=resumes)
        assert not cluster.history.violations
        await check_rest(cluster, COMPACTED.rest_s)
        last = cluster.job(JOB)
    metadata = {k: v for k, v in last["metadata"].items() if k in ("name", "annotations")}
    job = {**{k: last[k] for k in ("apiVersion", "kind", "spec")}, "metadata": metadata}
    async with start_cluster(kinds=[kind], options=COMPACTED.options) as cluster:
        cluster.start()
        await cluster.submit(job)
        wanted = await _outcome(Play(cluster, dice, kind, job), compare_pods=resumes)
    old, new = (yaml.safe_dump(one).splitlines() for one in (wanted, found))
    difference = "\n".join(difflib.unified_diff(old, new, "undisturbed", "disturbed", lineterm=""))
    assert not difference, difference


def _manifest(dice: random.Random, kind: Kind) -> JSON:
    job = training_job(kind.resource.kind, JOB, **dice.choice(_REPLICAS[kind.resource.kind]))
    for spec in next(iter(job["spec"].values())).values():
        spec["restartPolicy"] = "ExitCode"
    job["spec"]["runPolicy"] = {
        "cleanPodPolicy": dice.choice(("All", "Running", "None")),
        "suspend": dice.random() < 0.3,
    }
    return job


async def _outcome(play: Play, *, compare_pods: bool) -> JSON:
    """Wait until the job runs, then let it succeed; return what it had and what it has."""
    cluster = play.cluster
    await cluster.until(lambda: cluster.phase(JOB) == "Running" and play.is_whole())
    await cluster.settled()
    running = {"pods": [_spec_of(pod) for pod in play.owned(PODS)] if compare_pods else []}
    running |= _children(play)
    chiefs = _chiefs(play)
    for is_chief in (False, True):
        for pod in play.pods():
            if (pod["metadata"]["name"] in chiefs) is is_chief:
                await cluster.node.finish(pod["metadata"]["uid"])
        await cluster.settled()
    await cluster.until(lambda: cluster.phase(JOB) == "Done")
    await cluster.settled()
    status = cluster.status(JOB)
    pods = [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in play.owned(PODS)]
    return {
        "running": running,
        "children": _children(play),
        "pods": pods,
        "conditions": sorted(c["type"] for c in status["conditions"] if c["status"] == "True"),
        "replicas": status["replicaStatuses"],
    }


def _chiefs(play: Play) -> set[str]:
    job = make_job(play.cluster.job(JOB))
    return {job.child_name(replica) for replica in job.success_policy.success_replicas}


def _children(play: Play) -> JSON:
    return {
        resource.plural: [_spec_of(one) for one in play.owned(resource)]
        for resource in play.resources()
    }


def _spec_of(obj: JSON) -> JSON:
    """Return what the controller has written of an object."""
    metadata = {k: v for k, v in obj["metadata"].items() if k in ("name", "labels", "annotations")}
    left = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    if "spec" in left:
        left["spec"] = {k: v for k, v in left["spec"].items() if k != "nodeName"}
    return {**left, "metadata": metadata}


async def _act(play: Play, acts: Sequence[Act]) -> None:
    for _ in range(play.dice.randint(2, 8)):
        await asyncio.sleep(play.dice.uniform(0.1, 5))
        try:
            await play.dice.choice(acts)(play)
        except (ConflictError, NotFoundError, KeyError):
            # It was gone, or about to change by itself.
            continue


async def _linger(play: Play) -> None:
    """Run a controller that does not know that another one leads."""
    if play.dice.random() < 0.3:
        await asyncio.sleep(play.dice.uniform(0, 10))
        controller = play.cluster.start()
        await asyncio.sleep(play.dice.uniform(0, 8))
        await controller.kill()


async def _suspend(play: Play) -> None:
    await play.set_suspended(True)


async def _resume(play: Play) -> None:
    await play.set_suspended(False)


async def _scale(play: Play) -> None:
    await play.change({play.field: {"Worker": {"replicas": play.dice.randint(1, 4)}}})


async def _move_services(play: Play) -> None:
    layout = play.dice.choice(("replica", "job"))
    body = {"metadata": {"annotations": {_SERVICE: layout}}}
    if play.kind.resource.kind != "MPIJob":
        await play.cluster.user.patch(play.kind.resource, play.cluster.key(JOB), body)


async def _edit_policy(play: Play) -> None:
    policy: JSON = {"cleanPodPolicy": play.dice.choice(("All", "Running", "None"))}
    policy |= play.dice.choice(({}, {"backoffLimit": 1000}, {"activeDeadlineSeconds": 100_000}))
    await play.change({"runPolicy": policy})


async def _fail(play: Play) -> None:
    running = play.pods()
    for pod in play.dice.sample(running, min(len(running), play.dice.choice((1, 1, 2)))):
        await play.cluster.node.finish(pod["metadata"]["uid"], play.dice.choice((137, 143)))


async def _delete_child(play: Play) -> None:
    resource = play.dice.choice((PODS, PODS, *play.resources()))
    if found := play.owned(resource):
        key = play.cluster.key(play.dice.choice(found)["metadata"]["name"])
        grace = play.dice.choice((None, 0)) if resource == PODS else None
        await play.cluster.user.delete(resource, key, grace_period_s=grace)


async def _recreate(play: Play) -> None:
    """Delete the job and create it again under its name."""
    resource, key = play.kind.resource, play.cluster.key(JOB)
    last = play.cluster.job(JOB)
    await play.cluster.user.delete(
        resource, key, propagation=play.dice.choice(("Background", "Foreground"))
    )
    await asyncio.sleep(play.dice.choice((0.0, 0.0, 0.5, 3.0)))
    annotations = last["metadata"].get("annotations") or {}
    job = {
        "apiVersion": last["apiVersion"],
        "kind": last["kind"],
        "spec": last["spec"],
        "metadata": {"name": JOB, "annotations": annotations},
    }
    while True:
        try:
            await play.cluster.user.create(resource, play.cluster.namespace, job)
        except AlreadyExistsError:
            await asyncio.sleep(0.1)
        else:
            return


_ACTS: Final[tuple[Act, ...]] = (
    _suspend, _resume, _scale, _scale, _edit_policy, _fail, _fail, _delete_child, _delete_child,
    _recreate,
)  # fmt: skip
