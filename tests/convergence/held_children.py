"""Finalizers that keep children of a job, and the programs that remove them late or not at all."""

import asyncio
from contextlib import suppress
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, Resource
from dlctl.kube.client import WATCH_IDLE_TIMEOUT_S
from dlctl.kube.errors import ConflictError, InvalidError, NotFoundError
from dlctl.reconcilers.status.waiting_cause import PATIENCE_S
from tests.builders import make_job
from tests.convergence.edited_job import JOB, EditedJob
from tests.convergence.runs import quiet
from tests.support.timing import LoopClock

_HOLDS: Final = ("example.com/backup", "batch.kubernetes.io/job-tracking")
_LATEST_S: Final = 30.0
_LONG_S: Final = 120.0
_GONE: Final = (ConflictError, InvalidError, NotFoundError)


async def hold(play: EditedJob) -> None:
    """Add a finalizer to a child."""
    resource = play.dice.choice((PODS, PODS, *play.resources()))
    if found := [o for o in play.owned(resource) if "deletionTimestamp" not in o["metadata"]]:
        metadata = play.dice.choice(found)["metadata"]
        kept = {*(metadata.get("finalizers") or ()), play.dice.choice(_HOLDS)}
        body = {"metadata": {"uid": metadata["uid"], "finalizers": sorted(kept)}}
        await play.cluster.user.patch(resource, play.cluster.key(metadata["name"]), body)


async def release_late(play: EditedJob) -> None:
    """Remove the finalizers of children some time after these are deleted, until cancelled."""
    pending: set[str] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(0.5)
            for resource, obj in _held(play):
                uid = obj["metadata"]["uid"]
                if uid not in pending and "deletionTimestamp" in obj["metadata"]:
                    pending.add(uid)
                    after_s = play.dice.choice((0.0, 2.0, _LATEST_S))
                    group.create_task(_release(play, resource, obj, after_s))


async def check_held(play: EditedJob) -> None:
    """Check that a job whose children are kept waits for them, says so, and is quiet.

    Afterwards, they are released.
    """
    cluster = play.cluster
    # A watch that a fault has silenced is still silent, and a clock that is behind reaches the time
    # of a deletion late.
    behind = LoopClock().now() - cluster.clock.now()
    await asyncio.sleep(WATCH_IDLE_TIMEOUT_S + PATIENCE_S + max(0.0, behind.total_seconds()))
    await quiet(cluster, _LONG_S)
    wanted = {make_job(play.current()).child_name(r) for r in make_job(play.current()).replicas}
    kept = {
        pod["metadata"]["name"]
        for pod in cluster.objects(PODS)
        if pod["metadata"].get("finalizers") and "deletionTimestamp" in pod["metadata"]
    }
    if kept & wanted and cluster.phase(JOB) != "Suspended":
        assert cluster.condition("Waiting", JOB), cluster.dump()
    for resource, obj in _held(play):
        await _release(play, resource, obj, 0.0)


def _held(play: EditedJob) -> list[tuple[Resource, JSON]]:
    """Return the children with finalizers, those of former jobs of its name as well."""
    return [
        (resource, obj)
        for resource in (PODS, *play.resources())
        for obj in play.cluster.objects(resource)
        if set(obj["metadata"].get("finalizers") or ()) & set(_HOLDS)
    ]


async def _release(play: EditedJob, resource: Resource, obj: JSON, after_s: float) -> None:
    await asyncio.sleep(after_s)
    metadata = obj["metadata"]
    body = {"metadata": {"uid": metadata["uid"], "finalizers": None}}
    with suppress(*_GONE):
        await play.cluster.user.patch(resource, play.cluster.key(metadata["name"]), body)
