"""Jobs that end, are edited after their end, expire and are deleted while all else fails.

An end stays as it is, no job is deleted before its TTL, and in the end there is nothing left that
the policies do not keep.
"""

import asyncio
import datetime
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import kind_of, mxjob, training_job
from tests.convergence.random_faults import delay_writes, inject_faults, kill_controllers
from tests.convergence.runs import COMPACTED, check_rest
from tests.support.harness import ClusterHarness, start_cluster

JSON = dict[str, Any]
Act = Callable[["Play", str], Awaitable[None]]
_KINDS: Final = (
    kind_of("kubeflow.org/v1", "PyTorchJob"),
    kind_of("fioravanzo.org/v1alpha1", "MXJob"),
)
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "pytorchjobs.kubeflow.org", "events")
_LIST: Final = "list-job"
_JOBS: Final = ("job-0", "job-1", _LIST)
_TTLS: Final = (None, None, 0, 5, 40)
_CLEANING: Final = ("All", "Running", "None")
_HOLD: Final = "example.com/hold"


@attrs.define
class Play:
    """A few jobs and what is done to them; ``violations`` lists ends that changed or came early."""

    cluster: ClusterHarness
    dice: random.Random
    # The UIDs of the jobs that a user has deleted.
    deleted: set[str] = attrs.field(factory=set)
    violations: list[str] = attrs.field(factory=list)

    def watch(self, change: StorageEvent) -> None:
        for kind in _KINDS:
            if change.table == table_of(kind.resource):
                old, new = (
                    one.decoded(kind.resource) if one else None for one in (change.old, change.new)
                )
                self._check_end(change, old, new)
                self._check_deletion(change, old, new)

    def _check_end(self, change: StorageEvent, old: JSON | None, new: JSON | None) -> None:
        before, after = (_end_of(one) if one else {} for one in (old, new))
        if new is not None and before and before != after:
            self.violations.append(f"revision {change.revision}: {before} became {after}")

    def _check_deletion(self, change: StorageEvent, old: JSON | None, new: JSON | None) -> None:
        was_deleted = old is not None and "deletionTimestamp" in old["metadata"]
        is_deleted = new is None or "deletionTimestamp" in new["metadata"]
        if old is None or was_deleted or not is_deleted:
            return
        if old["metadata"]["uid"] not in self.deleted and not self._is_expired(old):
            name, policy = old["metadata"]["name"], old["spec"]["runPolicy"]
            self.violations.append(f"revision {change.revision}: {name} of {policy} is deleted")

    def _is_expired(self, job: JSON) -> bool:
        left_s = self.left_s(job)
        return left_s is not None and left_s <= 0

    def left_s(self, job: JSON) -> float | None:
        """Return the seconds until a job expires; None if it has not ended, or has no TTL."""
        ttl, end = job["spec"]["runPolicy"].get("ttlSecondsAfterFinished"), _end_of(job)
        if ttl is None or not end:
            return None
        completed = datetime.datetime.fromisoformat(str(end["completionTime"]))
        return float(ttl - (self.cluster.clock.now() - completed).total_seconds())

    def jobs(self) -> Iterator[JSON]:
        for kind in _KINDS:
            yield from self.cluster.objects(kind.resource)

    def job(self, name: str) -> JSON:
        """Return a job.

        :raises KeyError: if it is gone.
        """
        return {job["metadata"]["name"]: job for job in self.jobs()}[name]

    async def patch(self, name: str, **body: Any) -> None:
        resource = _resource(self.job(name))
        await self.cluster.user.patch(resource, self.cluster.key(name), body)

    async def create(self, name: str) -> None:
        job = _manifest(self.dice, name)
        body = {**job, "metadata": {"name": name}}
        if self.dice.random() < 0.2:
            body["metadata"]["finalizers"] = [_HOLD]
        resource = _resource(job)
        with suppress(AlreadyExistsError):
            await self.cluster.user.create(resource, self.cluster.namespace, body)

    def has_expired(self) -> bool:
        """Return whether each job that has a TTL or that a user has deleted is gone."""
        ttls = (job["spec"]["runPolicy"].get("ttlSecondsAfterFinished") for job in self.jobs())
        left = {job["metadata"]["uid"] for job in self.jobs()}
        return all(ttl is None for ttl in ttls) and not left & self.deleted


async def run_chaos(seed: int) -> None:
    """Let jobs end, and check what is left of them."""
    dice = random.Random(seed)
    async with start_cluster(kinds=_KINDS, options=COMPACTED.options) as cluster:
        play = Play(cluster, dice)
        cluster.server.storage.observers.append(play.watch)
        for name in _JOBS:
            await play.create(name)
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(_act(play))
            group.create_task(delay_writes(cluster, dice))
            await kill_controllers(cluster, dice)
        for name in _JOBS:
            await _release(play, name)
        await cluster.until(lambda: all(_is_active_or_done(job) for job in play.jobs()))
        for name in _JOBS:
            await _try(play, _finish, name)
        await cluster.until(lambda: all(map(_end_of, play.jobs())) and play.has_expired())
        for name in _JOBS:
            await _try(play, dice.choice((_edit_cleaning, _suspend, _delete_pod)), name)
        await cluster.settled()
        assert not play.violations, play.violations
        assert not cluster.history.violations
        _check_left(play)
        await check_rest(cluster, COMPACTED.rest_s)


def _check_left(play: Play) -> None:
    """Check that only children of jobs that are there are left, as their last policies say."""
    jobs = {job["metadata"]["uid"]: job for job in play.jobs()}
    for child in (*play.cluster.objects(PODS), *play.cluster.objects(SERVICES)):
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner["uid"] in jobs, f"{child['metadata']['name']} is an orphan"
    for pod in play.cluster.objects(PODS):
        job = jobs[pod["metadata"]["ownerReferences"][0]["uid"]]
        policy, phase = _cleaning(job), pod["status"]["phase"]
        keeps_running = policy == "None" and not _exceeded_deadline(job)
        has_ended = phase in ("Succeeded", "Failed")
        is_kept = keeps_running or (policy != "All" and has_ended)
        assert is_kept, f"{pod['metadata']['name']} is {phase}, and the policy {policy}"


def _manifest(dice: random.Random, name: str) -> JSON:
    policy: JSON = {"suspend": dice.random() < 0.2}
    if (ttl := dice.choice(_TTLS)) is not None:
        policy["ttlSecondsAfterFinished"] = ttl
    if dice.random() < 0.5:
        policy["activeDeadlineSeconds"] = dice.randint(3, 20)
    if name == _LIST:
        clean = dice.choice(_CLEANING)
        return mxjob(group="fioravanzo.org", name=name, cleanupPodPolicy=clean, runPolicy=policy)
    job = training_job("PyTorchJob", name, Master=1, Worker=2)
    for entry in job["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = "ExitCode"
    job["spec"]["runPolicy"] = {"cleanPodPolicy": dice.choice(_CLEANING), **policy}
    return job


def _resource(job: JSON) -> Resource:
    group = job["apiVersion"].partition("/")[0]
    return next(kind.resource for kind in _KINDS if kind.resource.group == group)


def _cleaning(job: JSON) -> str:
    spec = job["spec"]
    return str(spec.get("cleanupPodPolicy") or spec["runPolicy"]["cleanPodPolicy"])


def _end_of(job: JSON) -> JSON:
    """Return what a status says of the end of its job; empty while it has not ended."""
    status = job.get("status") or {}
    holding = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    ends = sorted(holding & {"Succeeded", "Failed"})
    return {"ends": ends, "completionTime": status["completionTime"]} if ends else {}


def _exceeded_deadline(job: JSON) -> bool:
    conditions = job["status"].get("conditions") or ()
    return any(c["type"] == "Failed" and "deadline" in c["message"] for c in conditions)


def _is_active_or_done(job: JSON) -> bool:
    status = job.get("status") or {}
    phase = status.get("phase") or (status.get("dlctl") or {}).get("phase")
    return phase in ("Running", "Done")


async def _act(play: Play) -> None:
    for _ in range(play.dice.randint(4, 16)):
        await asyncio.sleep(play.dice.uniform(0, 4))
        await _try(play, play.dice.choice(_ACTS), play.dice.choice(_JOBS))


async def _try(play: Play, act: Act, name: str) -> None:
    try:
        await act(play, name)
    except (ConflictError, NotFoundError, KeyError):
        # It was gone, or about to change by itself.
        return


async def _end_pods(play: Play, name: str, code: int) -> None:
    for pod in play.cluster.owned(PODS, play.job(name)):
        is_running = pod["status"].get("phase") == "Running"
        if is_running and "deletionTimestamp" not in pod["metadata"]:
            await play.cluster.node.finish(pod["metadata"]["uid"], code)


async def _finish(play: Play, name: str) -> None:
    # What a job leaves running when it ends is checked.
    if not _end_of(play.job(name)):
        await _end_pods(play, name, 0)


async def _break(play: Play, name: str) -> None:
    await _end_pods(play, name, 1)


async def _edit_ttl(play: Play, name: str) -> None:
    ttl = play.dice.choice(_TTLS)
    await play.patch(name, spec={"runPolicy": {"ttlSecondsAfterFinished": ttl}})


async def _keep(play: Play, name: str) -> None:
    """Remove the TTL of a job at about the moment when it expires."""
    left_s = play.left_s(play.job(name))
    await asyncio.sleep(max(0.0, (left_s or 0.0) + play.dice.choice((-0.1, 0.0, 0.0, 0.01))))
    await play.patch(name, spec={"runPolicy": {"ttlSecondsAfterFinished": None}})


async def _suspend(play: Play, name: str) -> None:
    await play.patch(name, spec={"runPolicy": {"suspend": True}})


async def _edit_cleaning(play: Play, name: str) -> None:
    clean = play.dice.choice(_CLEANING)
    of_list, of_map = {"cleanupPodPolicy": clean}, {"runPolicy": {"cleanPodPolicy": clean}}
    await play.patch(name, spec=of_list if name == _LIST else of_map)


async def _delete_pod(play: Play, name: str) -> None:
    if found := play.cluster.owned(PODS, play.job(name)):
        pod = play.dice.choice(sorted(one["metadata"]["name"] for one in found))
        await play.cluster.user.delete(PODS, play.cluster.key(pod))


async def _delete(play: Play, name: str) -> None:
    job = play.job(name)
    play.deleted.add(job["metadata"]["uid"])
    propagation = play.dice.choice(("Background", "Foreground"))
    await play.cluster.user.delete(_resource(job), play.cluster.key(name), propagation=propagation)


async def _recreate(play: Play, name: str) -> None:
    """Delete a job, if it is there, and create another one under its name."""
    await _try(play, _delete, name)
    await asyncio.sleep(play.dice.choice((0.0, 1.0)))
    await play.create(name)


async def _release(play: Play, name: str) -> None:
    """Resume a job, and remove its finalizers."""
    with suppress(KeyError, NotFoundError):
        kept = play.job(name)["metadata"].get("finalizers") or ()
        others = [one for one in kept if one != _HOLD]
        await play.patch(name, metadata={"finalizers": others})
        await play.patch(name, spec={"runPolicy": {"suspend": False}})


_ACTS: Final[Sequence[Act]] = (
    _finish, _finish, _finish, _break, _edit_ttl, _keep, _keep, _suspend, _release, _edit_cleaning,
    _edit_cleaning, _delete_pod, _delete, _recreate, _recreate,
)  # fmt: skip
