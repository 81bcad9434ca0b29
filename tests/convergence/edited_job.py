"""A job that users edit, in any of the forms of a spec."""

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICES, Resource
from dlctl.dialects.kind import Kind
from tests.builders import bare_job, make_job, mxjob, training_job
from tests.support.harness import ClusterHarness

JOB: Final = "edited"
_REPLICAS: Final[dict[str, Sequence[dict[str, int]]]] = {
    "TFJob": ({"Worker": 2}, {"Chief": 1, "PS": 1, "Worker": 2}),
    "PyTorchJob": ({"Worker": 2}, {"Master": 1, "Worker": 2}),
    "PaddleJob": ({"Worker": 2}, {"Master": 1, "Worker": 2}),
    "XGBoostJob": ({"Master": 1, "Worker": 2},),
    "JAXJob": ({"Worker": 2},),
    "MPIJob": ({"Launcher": 1, "Worker": 2},),
    "MXJob": ({"Scheduler": 1, "Server": 1, "Worker": 2},),
}
_LIST_FORMS: Final = ("kubeflow.org", "fioravanzo.org", "bare MXJob", "bare TFJob")
_TYPE_FIELDS: Final = ("replicaType", "mxReplicaType")
_CLEANING: Final = ("All", "Running", "None")


@attrs.define
class EditedJob:
    """One job and what is done to it."""

    cluster: ClusterHarness
    dice: random.Random
    manifest: JSON

    @property
    def kind(self) -> Kind:
        (kind,) = self.cluster.kinds
        return kind

    @property
    def resource(self) -> Resource:
        """The resource in the version of the manifest."""
        version = self.manifest["apiVersion"].rpartition("/")[2]
        return attrs.evolve(self.kind.resource, version=version)

    async def patch(self, **body: Any) -> None:
        await self.cluster.user.patch(self.resource, self.cluster.key(JOB), body)

    async def set_suspended(self, value: bool) -> None:
        await self.patch(spec={"runPolicy": {"suspend": value}})

    async def scale(self, count: int) -> None:
        """Set the number of workers."""
        spec = self.cluster.job(JOB)["spec"]
        if isinstance(spec, list):
            await self.patch(spec=_scaled(spec, count))
        elif "replicaSpecs" in spec:
            await self.patch(spec={"replicaSpecs": _scaled(spec["replicaSpecs"], count)})
        else:
            field = next(name for name in spec if name.endswith("ReplicaSpecs"))
            await self.patch(spec={field: {"Worker": {"replicas": count}}})

    def owned(self, resource: Resource) -> list[JSON]:
        with suppress(LookupError):
            found = self.cluster.owned(resource, self.cluster.job(JOB))
            return sorted(found, key=lambda one: str(one["metadata"]["name"]))
        return []

    def running_pods(self) -> list[JSON]:
        """Return the running pods that are not being deleted."""
        return [
            pod
            for pod in self.owned(PODS)
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def is_whole(self) -> bool:
        job = make_job(self.current())
        wanted = {job.child_name(replica) for replica in job.replicas}
        running = {pod["metadata"]["name"] for pod in self.running_pods()}
        return running == wanted and len(self.owned(PODS)) == len(wanted)

    def current(self) -> JSON:
        """Return the job in the version of the manifest."""
        return {**self.cluster.job(JOB), "apiVersion": self.manifest["apiVersion"]}

    def resources(self) -> Iterator[Resource]:
        """Yield the resources of its children but pods."""
        yield SERVICES
        yield from sorted(self.kind.dependent_resources, key=lambda one: one.group_resource)


def random_manifest(dice: random.Random) -> JSON:
    form = dice.choice((*_REPLICAS, *_LIST_FORMS))
    if form in _REPLICAS:
        return _map_form(dice, form)
    if form.startswith("bare "):
        kind = form.removeprefix("bare ")
        counts = {"ps": 1} if kind == "TFJob" else {"scheduler": 1, "server": 1}
        job = bare_job(kind, JOB, **counts, worker=2)
        entries = job["spec"]
    else:
        policy = {"suspend": dice.random() < 0.3}
        clean = dice.choice(_CLEANING)
        job = mxjob(group=form, name=JOB, cleanupPodPolicy=clean, runPolicy=policy)
        entries = job["spec"]["replicaSpecs"]
    for entry in entries:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    return job


def _map_form(dice: random.Random, kind: str) -> JSON:
    job = training_job(kind, JOB, **dice.choice(_REPLICAS[kind]))
    for spec in next(iter(job["spec"].values())).values():
        spec["restartPolicy"] = "ExitCode"
    suspend = dice.random() < 0.3
    job["spec"]["runPolicy"] = {"cleanPodPolicy": dice.choice(_CLEANING), "suspend": suspend}
    return job


def random_policy(dice: random.Random, spec: JSON) -> JSON:
    """Return an edit of a spec's policies that does not end its job."""
    clean = dice.choice(_CLEANING)
    policy = dice.choice(({}, {"backoffLimit": 1000}, {"activeDeadlineSeconds": 100_000}))
    if "replicaSpecs" in spec:
        return {"cleanupPodPolicy": clean, "runPolicy": policy}
    return {"runPolicy": {"cleanPodPolicy": clean, **policy}}


def _scaled(entries: list[JSON], count: int) -> list[JSON]:
    return [{**one, "replicas": count} if _is_worker(one) else one for one in entries]


def _is_worker(entry: JSON) -> bool:
    return any(entry.get(field) == "WORKER" for field in _TYPE_FIELDS)
