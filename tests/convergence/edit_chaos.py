"""Jobs whose users edit, delete and create them again while pods, server and controller fail.

In the end each has what a new job with its last spec has, in a cluster where nothing fails.
"""

import asyncio
import difflib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import yaml

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.api.objects.dependents import GANG_RETRIED_AT
from dlctl.api.objects.pod_groups import pod_group_resource
from dlctl.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from tests.builders import make_job
from tests.convergence.edited_job import JOB, EditedJob, random_manifest, random_policy
from tests.convergence.held_children import check_held, hold, release_late
from tests.convergence.random_faults import (
    SKEWS,
    delay_writes,
    inject_faults,
    kill_controllers,
)
from tests.convergence.runs import COMPACTED, check_rest
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.pod_groups import admit_gangs, kinds_with_gangs, serve_pod_groups

Act = Callable[[EditedJob], Awaitable[None]]
_SERVICE: Final = "dlctl.dev/service"
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "configmaps", "events")
_SCHEDULERS: Final = ("", "", "volcano", "coscheduler")


async def run_chaos(seed: int, *, holding: bool = False) -> None:
    """Disturb a job, let its replicas succeed, and compare it with one that nobody disturbed.

    If ``holding``, finalizers keep some of its children.
    """
    dice = random.Random(seed)
    manifest, scheduler = random_manifest(dice), dice.choice(_SCHEDULERS)
    can_suspend = isinstance(manifest["spec"], dict)
    resumes = can_suspend and dice.random() < 0.5
    acts = (*_ACTS, *(_ACTS_OF_POLICIES if can_suspend else ()))
    acts += (_move_services,) if resumes else ()
    acts += (hold,) * 5 if holding else ()
    async with _start(manifest, scheduler) as cluster:
        play = EditedJob(cluster, dice, manifest)
        await cluster.submit(manifest)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            acting = group.create_task(_act(play, acts))
            if holding:
                releasing = group.create_task(release_late(play))
                acting.add_done_callback(lambda _: releasing.cancel())
            group.create_task(_linger(play))
            group.create_task(delay_writes(cluster, dice))
            await kill_controllers(cluster, dice, ahead_s=SKEWS)
        if holding:
            await _hold_and_act(play, can_suspend=can_suspend)
        if resumes:
            await play.set_suspended(True)
            await cluster.until(lambda: cluster.phase(JOB) == "Suspended" and not play.owned(PODS))
        if can_suspend:
            await play.set_suspended(False)
        found = await _outcome(play, compare_pods=resumes)
        assert not cluster.history.violations
        await check_rest(cluster, COMPACTED.rest_s)
        last = play.current()
    annotations = last["metadata"].get("annotations") or {}
    metadata = {"name": JOB, "annotations": annotations}
    manifest = {**{k: last[k] for k in ("apiVersion", "kind", "spec")}, "metadata": metadata}
    async with _start(manifest, scheduler) as cluster:
        cluster.start()
        await cluster.submit(manifest)
        play = EditedJob(cluster, dice, manifest)
        wanted = await _outcome(play, compare_pods=resumes)
    lines = difflib.unified_diff(wanted, found, "undisturbed", "disturbed", lineterm="")
    difference = "\n".join(lines)
    assert not difference, difference


@asynccontextmanager
async def _start(manifest: JSON, scheduler: str) -> AsyncIterator[ClusterHarness]:
    """Start a cluster with this gang scheduler, if any, and the kind of a job."""
    group = manifest["apiVersion"].partition("/")[0]
    (kind,) = (
        kind
        for kind in kinds_with_gangs(scheduler)
        if (kind.resource.group, kind.resource.kind) == (group, manifest["kind"])
    )
    groups = pod_group_resource(scheduler)
    async with start_cluster(kinds=[kind], options=COMPACTED.options) as cluster:
        if groups is None:
            yield cluster
            return
        await serve_pod_groups(cluster.user, groups)
        admitting = asyncio.create_task(admit_gangs(cluster, groups))
        yield cluster
        admitting.cancel()


async def _outcome(play: EditedJob, *, compare_pods: bool) -> Sequence[str]:
    """Wait until the job runs, then let it succeed; return what it had and has, as lines."""
    cluster = play.cluster
    await cluster.until(lambda: cluster.phase(JOB) == "Running" and play.is_whole())
    await cluster.settled()
    running = {"pods": [_spec_of(pod) for pod in play.owned(PODS)] if compare_pods else []}
    running |= _children(play)
    chiefs = _chiefs(play)
    for is_chief in (False, True):
        for pod in play.running_pods():
            if (pod["metadata"]["name"] in chiefs) is is_chief:
                await cluster.node.finish(pod["metadata"]["uid"])
        await cluster.settled()
    await cluster.until(lambda: cluster.phase(JOB) == "Done")
    await cluster.settled()
    status = cluster.status(JOB)
    pods = [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in play.owned(PODS)]
    whole = {
        "running": running,
        "children": _children(play),
        "pods": pods,
        "conditions": sorted(c["type"] for c in status["conditions"] if c["status"] == "True"),
        "replicas": status["replicaStatuses"],
    }
    # Derived from the job's UID, unless the spec says it.
    runtime_id = make_job(play.current()).runtime_id or "none"
    return yaml.safe_dump(whole).replace(runtime_id, "RUNTIME_ID").splitlines()


def _chiefs(play: EditedJob) -> set[str]:
    job = make_job(play.current())
    return {job.child_name(replica) for replica in job.success_policy.success_replicas}


def _children(play: EditedJob) -> JSON:
    return {
        resource.plural: [_spec_of(one) for one in play.owned(resource)]
        for resource in play.resources()
    }


def _spec_of(obj: JSON) -> JSON:
    """Return what the controller has written of an object."""
    metadata = {k: v for k, v in obj["metadata"].items() if k in ("name", "labels", "annotations")}
    if "annotations" in metadata:
        noted = metadata["annotations"]
        metadata["annotations"] = {k: v for k, v in noted.items() if k != GANG_RETRIED_AT}
    left = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    if "spec" in left:
        left["spec"] = {k: v for k, v in left["spec"].items() if k != "nodeName"}
    return {**left, "metadata": metadata}


async def _act(play: EditedJob, acts: Sequence[Act]) -> None:
    for _ in range(play.dice.randint(2, 8)):
        await asyncio.sleep(play.dice.uniform(0.1, 5))
        try:
            await play.dice.choice(acts)(play)
        except (ConflictError, NotFoundError, KeyError):
            # It was gone, or about to change by itself.
            continue


async def _hold_and_act(play: EditedJob, *, can_suspend: bool) -> None:
    """Keep children of a whole job that loses some of them."""
    if can_suspend:
        await play.set_suspended(False)
    releasing = asyncio.create_task(release_late(play))
    await play.cluster.until(play.is_whole)
    releasing.cancel()
    acts = (_delete_child, _fail, _scale, *((_suspend, _resume) if can_suspend else ()))
    for act in (hold, hold, hold, *play.dice.choices(acts, k=3)):
        with suppress(ConflictError, NotFoundError, KeyError):
            await act(play)
        await asyncio.sleep(play.dice.choice((0.0, 5.0)))
    await check_held(play)


async def _linger(play: EditedJob) -> None:
    """Run a controller that does not know that another one leads."""
    if play.dice.random() < 0.3:
        await asyncio.sleep(play.dice.uniform(0, 10))
        controller = play.cluster.start()
        await asyncio.sleep(play.dice.uniform(0, 8))
        await controller.kill()


async def _suspend(play: EditedJob) -> None:
    await play.set_suspended(True)


async def _resume(play: EditedJob) -> None:
    await play.set_suspended(False)


async def _scale(play: EditedJob) -> None:
    await play.scale(play.dice.randint(1, 4))


async def _move_services(play: EditedJob) -> None:
    layout = play.dice.choice(("replica", "job"))
    if play.kind.resource.kind != "MPIJob":
        await play.patch(metadata={"annotations": {_SERVICE: layout}})


async def _edit_policy(play: EditedJob) -> None:
    await play.patch(spec=random_policy(play.dice, play.manifest["spec"]))


async def _fail(play: EditedJob) -> None:
    running = play.running_pods()
    for pod in play.dice.sample(running, min(len(running), play.dice.choice((1, 1, 2)))):
        await play.cluster.node.finish(pod["metadata"]["uid"], play.dice.choice((137, 143)))


async def _delete_child(play: EditedJob) -> None:
    resource = play.dice.choice((PODS, PODS, *play.resources()))
    if found := play.owned(resource):
        key = play.cluster.key(play.dice.choice(found)["metadata"]["name"])
        grace = play.dice.choice((None, 0)) if resource == PODS else None
        await play.cluster.user.delete(resource, key, grace_period_s=grace)


async def _recreate(play: EditedJob) -> None:
    """Delete the job and create it again under its name."""
    resource, key = play.resource, play.cluster.key(JOB)
    last = play.current()
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


_ACTS: Final[Sequence[Act]] = (
    _scale, _scale, _fail, _fail, _delete_child, _delete_child, _recreate
)  # fmt: skip
_ACTS_OF_POLICIES: Final[Sequence[Act]] = (_suspend, _resume, _edit_policy)
