"""Jobs that Kueue admits, evicts and admits elsewhere while API server and controllers fail.

A suspended job has no pods, the pods of an admitted one are those of its last admission, and no
eviction counts as a restart.
"""

import asyncio
import copy
import datetime
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import attrs

from dlctl.api.meta import PODS, Resource
from dlctl.kube.errors import ConflictError, InvalidError, NotFoundError
from tests.builders import kind_of, training_job
from tests.convergence.random_faults import delay_writes, inject_faults, kill_controllers
from tests.convergence.runs import COMPACTED, check_rest
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job
from tests.support.elastic_harness import start_elastic_cluster
from tests.support.harness import ClusterHarness, start_cluster

JSON = dict[str, Any]
JOB: Final = "queued"
_PODS: Final = 3
_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = ("", "pods", "services", "jobs.batch", "configmaps", "events")
_GATE: Final = {"name": "kueue.x-k8s.io/topology"}
_INJECTED: Final = ("nodeSelector", "tolerations", "schedulingGates")
_FLAVORS: Final = ("spot", "reserved", "on-demand")
_LAST: Final = "last"
_LAUNCHER_KINDS: Final = ("MPIJob v2beta1", "TrainingJob")
_MAP_KINDS: Final = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
_COUNTS: Final = {
    "TFJob": {"Chief": 1, "Worker": 2},
    "JAXJob": {"Worker": 3},
    "MXJob": {"Scheduler": 1, "Server": 1, "Worker": 1},
    "MPIJob": {"Launcher": 1, "Worker": 2},
}


@attrs.define
class Play:
    """One job, and its admissions."""

    cluster: ClusterHarness
    dice: random.Random
    resource: Resource
    # The field of the replicas, and the one that holds ``suspend``; "" for the spec itself.
    replicas_field: str
    policy_field: str
    # As the user has written them.
    templates: JSON
    admitted: datetime.datetime = attrs.field(init=False)

    async def read(self) -> JSON:
        body: JSON = await self.cluster.user.get(self.resource, self.cluster.key(JOB), JSON)
        return body

    async def admit(self, flavor: str) -> None:
        """Resume the job with a flavor in its templates, as one patch."""
        self.admitted = self.cluster.clock.now()
        gates = [_GATE] if self.dice.random() < 0.3 else []
        await self._patch(
            {t: _admitted(one, flavor, gates) for t, one in self.templates.items()}, suspend=False
        )

    async def evict(self) -> None:
        """Suspend the job, and restore its templates at once or when nothing of it is active."""
        restored = {type_: _restored(one) for type_, one in self.templates.items()}
        if self.dice.random() < 0.5:
            await self._patch(restored, suspend=True)
        else:
            await self._patch({}, suspend=True)
        await self.cluster.until(lambda: self.is_suspended)
        await self._patch(restored)

    async def _patch(self, templates: JSON, *, suspend: bool | None = None) -> None:
        spec: JSON = {self.replicas_field: {t: {"template": templates[t]} for t in templates}}
        if suspend is not None:
            policy = {"suspend": suspend}
            spec |= {self.policy_field: policy} if self.policy_field else policy
        while True:
            metadata = {"resourceVersion": (await self.read())["metadata"]["resourceVersion"]}
            body = {"metadata": metadata, "spec": spec}
            try:
                await self.cluster.user.patch(self.resource, self.cluster.key(JOB), body)
            except ConflictError:
                continue
            return

    @property
    def is_suspended(self) -> bool:
        """Return whether Kueue sees the job as inactive."""
        counts = self.cluster.status(JOB).get("replicaStatuses") or {}
        active = any(one.get("active") for one in counts.values())
        return bool(self.cluster.condition("Suspended", JOB)) and not active

    def condition(self, type_: str) -> str:
        stated = self.cluster.status(JOB).get("conditions") or ()
        return next((c["status"] for c in stated if c["type"] == type_), "")

    def pods(self) -> list[JSON]:
        return self.cluster.objects(PODS)

    def is_whole(self) -> bool:
        pods = self.pods()
        running = [
            pod
            for pod in pods
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]
        return len(running) == len(pods) == _PODS


async def run_chaos(seed: int) -> None:
    """Admit and evict a job, let it run in the end, and check it after each step."""
    dice = random.Random(seed)
    kind = dice.choice((*_LAUNCHER_KINDS, *_LAUNCHER_KINDS, *_MAP_KINDS))
    job = _manifest(kind)
    async with _start(job) as cluster:
        play = _play(cluster, dice, job)
        await cluster.submit(job)
        async with asyncio.TaskGroup() as scheduler:
            ungating = scheduler.create_task(_ungate(play))
            async with asyncio.TaskGroup() as group:
                group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
                group.create_task(delay_writes(cluster, dice))
                group.create_task(_queue(play))
                await kill_controllers(cluster, dice)
            await _check_end(play)
            ungating.cancel()
        assert not cluster.history.violations
        await check_rest(cluster, COMPACTED.rest_s)


def _manifest(kind: str) -> JSON:
    if kind == "TrainingJob":
        return elastic_job(name=JOB, suspend=True, worker={"restartPolicy": "Always"})
    if kind == "MPIJob v2beta1":
        return mpi_job(2, name=JOB, policy={"suspend": True, "cleanPodPolicy": "Running"})
    job = training_job(kind, JOB, **_COUNTS.get(kind, {"Master": 1, "Worker": 2}))
    job["spec"]["runPolicy"] = {"suspend": True}
    return job


@asynccontextmanager
async def _start(job: JSON) -> AsyncIterator[ClusterHarness]:
    if job["kind"] == "TrainingJob":
        async with start_elastic_cluster(COMPACTED.options, gently=False) as stage:
            await stage.cluster.kill_all()
            yield stage.cluster
        return
    kind = kind_of("kubeflow.org/v1", job["kind"])
    async with start_cluster(kinds=[kind], options=COMPACTED.options) as cluster:
        if job["apiVersion"] == "kubeflow.org/v2beta1":
            await cluster.start_job_controller()
        yield cluster


def _play(cluster: ClusterHarness, dice: random.Random, job: JSON) -> Play:
    (kind,) = cluster.kinds
    version = job["apiVersion"].rpartition("/")[2]
    field = next(name for name in job["spec"] if name.endswith("ReplicaSpecs"))
    templates = {t: copy.deepcopy(one["template"]) for t, one in job["spec"][field].items()}
    policy = "" if "suspend" in job["spec"] else "runPolicy"
    resource = attrs.evolve(kind.resource, version=version)
    return Play(cluster, dice, resource, field, policy, templates)


def _admitted(template: JSON, flavor: str, gates: list[JSON]) -> JSON:
    toleration = {"key": flavor, "operator": "Exists"}
    own = template["spec"].get("tolerations") or ()
    spec: JSON = {"nodeSelector": {"flavor": flavor}, "tolerations": [*own, toleration]}
    if gates:
        spec["schedulingGates"] = gates
    metadata = {"labels": {"podset": flavor}, "annotations": {"workload": flavor}}
    return {"metadata": metadata, "spec": spec}


def _restored(template: JSON) -> JSON:
    fields = {name: template["spec"].get(name) for name in _INJECTED}
    return {"metadata": {"labels": None, "annotations": None}, "spec": fields}


async def _ungate(play: Play) -> None:
    """Remove the gate of pods a little later, as the topology scheduler of Kueue does."""
    while True:
        await asyncio.sleep(0.5)
        for pod in play.pods():
            if pod["spec"].get("schedulingGates") and "deletionTimestamp" not in pod["metadata"]:
                body = {
                    "metadata": {"uid": pod["metadata"]["uid"]},
                    "spec": {"schedulingGates": None},
                }
                with suppress(ConflictError, NotFoundError, InvalidError):
                    await play.cluster.user.patch(
                        PODS, play.cluster.key(pod["metadata"]["name"]), body
                    )


async def _queue(play: Play) -> None:
    """Admit and evict the job a few times, and admit it for good."""
    dice = play.dice
    for _ in range(dice.randint(1, 5)):
        await _check_suspended(play)
        await asyncio.sleep(dice.choice((0.0, 0.0, 3.0)))
        flavor = dice.choice(_FLAVORS)
        await play.admit(flavor)
        if dice.random() < 0.5:
            await _check_running(play, flavor)
        else:
            await asyncio.sleep(dice.uniform(0, 2))
        await play.evict()
    await _check_suspended(play)
    await play.admit(_LAST)


async def _check_suspended(play: Play) -> None:
    await play.cluster.until(lambda: play.is_suspended and not play.pods())
    assert play.condition("Running") != "True", play.cluster.dump()


async def _check_running(play: Play, flavor: str) -> None:
    await play.cluster.until(lambda: play.condition("Running") == "True" and play.is_whole())
    for pod in play.pods():
        keys = [one.get("key") for one in pod["spec"].get("tolerations") or ()]
        others = set(keys) & {*_FLAVORS, _LAST}
        labels, annotations = (pod["metadata"].get(f) or {} for f in ("labels", "annotations"))
        found = (
            pod["spec"].get("nodeSelector"),
            others,
            labels.get("podset"),
            annotations.get("workload"),
        )
        assert found == ({"flavor": flavor}, {flavor}, flavor, flavor), found
    assert play.condition("Suspended") == "False", play.cluster.dump()
    started = datetime.datetime.fromisoformat(play.cluster.status(JOB)["startTime"])
    assert started >= play.admitted.replace(microsecond=0), play.cluster.dump()


async def _check_end(play: Play) -> None:
    cluster = play.cluster
    await _check_running(play, _LAST)
    await cluster.settled()
    status = cluster.status(JOB)
    own = status.get("dlctl") or status
    assert not own.get("restarts"), cluster.dump()
    for pod in play.pods():
        # The end of the first one may end the job, and with it the others.
        with suppress(KeyError):
            await cluster.node.finish(pod["metadata"]["uid"])
    await cluster.until(lambda: cluster.condition("Succeeded", JOB))
