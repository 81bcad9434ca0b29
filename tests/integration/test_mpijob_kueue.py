"""MPIJobs of v2beta1 under Kueue's integration for them, played by its source.

Kueue reads and patches the job in that version, with the resource version that it has seen.
"""

import copy
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.kube.errors import ConflictError
from tests.builders import kind_of
from tests.integration.mpi_jobs import (
    JOB,
    MPI,
    counts,
    finish_launcher,
    launcher_job,
    pods,
    set_suspended,
    submit,
)
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster

MPI_V2BETA1: Final = kind_of("kubeflow.org/v2beta1", "MPIJob").resource
TOPOLOGY_GATE: Final = {"name": "kueue.x-k8s.io/topology"}
# By which it selects the pods of a job.
SELECTOR: Final = {
    "training.kubeflow.org/job-name": JOB,
    "training.kubeflow.org/operator-name": "mpi-operator",
}
POD_SETS: Final = ("Launcher", "Worker")


@attrs.frozen
class Flavor:
    """A flavor: the labels of its nodes, and its toleration."""

    name: str
    labels: JSON
    gates: tuple[JSON, ...] = ()

    @property
    def toleration(self) -> JSON:
        return {"key": self.name, "operator": "Exists"}


@attrs.define
class Kueue:
    """Its reconciler, step by step."""

    cluster: ClusterHarness
    # The templates as they were when the workload was made.
    templates: JSON = attrs.field(factory=dict)

    async def read(self) -> JSON:
        body: JSON = await self.cluster.user.get(MPI_V2BETA1, self.cluster.key(JOB), JSON)
        return body

    async def admit(self, flavor: Flavor) -> None:
        """Write a flavor into the templates and resume the job, in one patch."""
        job = await self.read()
        specs = job["spec"]["mpiReplicaSpecs"]
        self.templates = {type_: copy.deepcopy(specs[type_]["template"]) for type_ in POD_SETS}
        changed = {type_: _admitted(specs[type_]["template"], type_, flavor) for type_ in POD_SETS}
        await self._patch(job, changed, suspend=False)

    async def evict(self) -> None:
        """Suspend the job; when nothing of it is active, restore its templates."""
        await set_suspended(self.cluster, suspended=True)
        await self.cluster.until(lambda: not self.is_active)
        await self.cluster.until(lambda: not self.cluster.pods())
        job = await self.read()
        await self._patch(job, {type_: _restored(self.templates[type_]) for type_ in POD_SETS})

    async def _patch(self, job: JSON, templates: JSON, **policy: bool) -> None:
        spec: JSON = {"mpiReplicaSpecs": {t: {"template": templates[t]} for t in templates}}
        if policy:
            spec["runPolicy"] = policy
        version = job["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        try:
            await self.cluster.user.patch(MPI_V2BETA1, self.cluster.key(JOB), body)
        except ConflictError:
            # Its next reconciliation sees the new version.
            await self._patch(await self.read(), templates, **policy)

    @property
    def is_active(self) -> bool:
        return any(each.get("active") for each in counts(self.cluster).values())

    @property
    def pods_ready(self) -> bool:
        return bool(self.cluster.condition("Running", JOB))

    @property
    def outcome(self) -> tuple[str, str]:
        """Return how the job has finished, and the message of the workload."""
        for type_ in ("Succeeded", "Failed"):
            if message := self.cluster.condition(type_, JOB):
                return type_, message
        return "", ""


def flavor(cluster: ClusterHarness, name: str, *gates: JSON) -> Flavor:
    """Return a flavor of nodes on which the pods of the test can run."""
    return Flavor(name, cluster.node.placement().get("nodeSelector") or {"pool": name}, gates)


def _admitted(template: JSON, type_: str, flavor: Flavor) -> JSON:
    spec: JSON = {
        "nodeSelector": flavor.labels,
        "tolerations": [*(template["spec"].get("tolerations") or ()), flavor.toleration],
    }
    if flavor.gates:
        spec["schedulingGates"] = list(flavor.gates)
    labels = {"kueue.x-k8s.io/podset": type_.lower()}
    return {
        "metadata": {"labels": labels, "annotations": {"kueue.x-k8s.io/workload": JOB}},
        "spec": spec,
    }


def _restored(template: JSON) -> JSON:
    """Return a patch that puts the fields of a template back that an admission sets."""
    fields: JSON = dict.fromkeys(("nodeSelector", "tolerations", "schedulingGates"))
    spec = {**fields, **{n: v for n, v in template["spec"].items() if n in fields}}
    metadata = {"labels": None, "annotations": None, **(template.get("metadata") or {})}
    return {"metadata": metadata, "spec": spec}


def queued(**spec: Any) -> JSON:
    """Return a job as Kueue's webhook leaves it: suspended."""
    return mpi_job(policy={"suspend": True}, **spec)


def tolerations(cluster: ClusterHarness) -> list[list[str]]:
    """Return the keys that pods tolerate and a flavor may have, by pod."""
    names = ("spot", "reserved")
    return [
        [t["key"] for t in pod["spec"].get("tolerations") or () if t.get("key") in names]
        for pod in cluster.objects(PODS)
    ]


async def test_job_is_admitted_evicted_and_admitted_elsewhere(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        kueue = Kueue(cluster)
        await submit(cluster, queued())
        await cluster.until(lambda: cluster.condition("Suspended", JOB))
        assert not cluster.pods()

        await kueue.admit(flavor(cluster, "spot"))
        await cluster.until(lambda: kueue.pods_ready)
        assert tolerations(cluster) == [["spot"]] * 3
        for pod in cluster.objects(PODS):
            labels, annotations = (pod["metadata"][name] for name in ("labels", "annotations"))
            assert labels.items() >= SELECTOR.items()
            assert labels["kueue.x-k8s.io/podset"] == labels["training.kubeflow.org/job-role"]
            assert annotations["kueue.x-k8s.io/workload"] == JOB

        await kueue.evict()
        await cluster.settled()
        assert not kueue.pods_ready
        template = launcher_job(cluster)["spec"]["template"]
        assert cluster.condition("Suspended", JOB)

        await kueue.admit(flavor(cluster, "reserved"))
        await cluster.until(lambda: kueue.pods_ready)
        assert tolerations(cluster) == [["reserved"]] * 3
        assert launcher_job(cluster)["spec"]["template"] != template

        await finish_launcher(cluster)
        await cluster.until(lambda: kueue.outcome[0])
        message = f"MPIJob {cluster.namespace}/{JOB} successfully completed."
        assert kueue.outcome == ("Succeeded", message)


async def test_topology_is_assigned_by_the_index_of_workers(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI]) as cluster:
        kueue = Kueue(cluster)
        await submit(cluster, queued())
        await cluster.until(lambda: cluster.condition("Suspended", JOB))
        await kueue.admit(flavor(cluster, "spot", TOPOLOGY_GATE))
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await cluster.settled()
        assert all(
            pod["spec"]["schedulingGates"] == [TOPOLOGY_GATE] for pod in cluster.objects(PODS)
        )
        indexes = [
            pod["metadata"]["labels"]["training.kubeflow.org/replica-index"]
            for pod in pods(cluster, "worker")
        ]
        assert sorted(indexes) == ["0", "1"]

        for name in cluster.pods():
            await cluster.user.patch(PODS, cluster.key(name), {"spec": {"schedulingGates": None}})

        await cluster.until(lambda: kueue.pods_ready)


async def test_launcher_waits_for_the_workers_of_each_admission(
    start_cluster: StartCluster,
) -> None:
    """In mpi-operator it does not, since Kueue creates jobs suspended."""
    async with start_cluster(kinds=[MPI]) as cluster:
        cluster.require_embedded("there, a scheduler of its own finds room for pods")
        kueue = Kueue(cluster)
        await submit(cluster, queued(launcherCreationPolicy="WaitForWorkersReady"))
        for name in ("spot", "reserved"):
            await cluster.until(lambda: cluster.condition("Suspended", JOB))
            cluster.node.has_room.clear()
            await kueue.admit(flavor(cluster, name))
            await cluster.until(lambda: len(pods(cluster, "worker")) == 2)
            await cluster.settled()
            assert not pods(cluster, "launcher")
            cluster.node.has_room.set()
            await cluster.until(lambda: kueue.pods_ready)
            await kueue.evict()
