"""The controller's role grants what it uses, and nothing else."""

from functools import partial
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, MANAGED_BY_LABEL, PODS, SERVICES
from dlctl.api.objects.workloads import WORKLOADS
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.dialects.kind import Kind
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from tests.builders import (
    KINDS,
    bare_job,
    kind_of,
    manifest,
    mxjob,
    renderer_of,
    template,
    tfjob_of_tensorflow_org,
    training_job,
    xgboost_operators_job,
)
from tests.dialects.et_operator.manifests import elastic_job
from tests.integration.rights import Grant, granted, role, used
from tests.mpi_v2beta1 import mpi_job
from tests.support.batch_jobs import batch_job
from tests.support.fake_launcher import FakeLaunchers
from tests.support.harness import ClusterHarness, StartCluster, owner_uid
from tests.support.outcomes import KEEPS_RUNNING, Exit
from tests.support.training_operator import operator_children
from tests.support.workloads import serve_workloads

# Simulated pods cannot exec, a controller of a single namespace watches no nodes, and new servers
# clear the start time of suspended Jobs themselves.
UNUSED_IN_A_REAL_WORLD: Final = frozenset(
    {
        ("", "pods/exec", "get"),
        ("", "nodes", "list"),
        ("", "nodes", "watch"),
        # Kueue is not installed.
        ("kueue.x-k8s.io", "workloads", "list"),
        ("kueue.x-k8s.io", "workloads", "watch"),
        ("batch", "jobs/status", "patch"),
    }
)
MPI: Final = kind_of("kubeflow.org/v2beta1", "MPIJob")
DEPENDENTS: Final = {resource for kind in KINDS for resource in kind.dependent_resources}


def demanded_by_admission(kinds: list[Kind]) -> set[Grant]:
    """Return the rights that OwnerReferencesPermissionEnforcement requires for owner references.

    They concern children and existing scalers.
    """
    owners = {(k.resource.group, f"{k.resource.plural}/finalizers", "update") for k in kinds}
    return owners | {(s.group, s.plural, "delete") for k in kinds for s in k.scalers}


def delegated(kinds: list[Kind]) -> set[Grant]:
    """Return the rights that the controller must have to grant them in roles of jobs."""
    return {grant for kind in kinds for grant in kind.delegated_rules}


def first_tfjob(name: str) -> JSON:
    """Return a job in tf-operator's list form, into which the RuntimeId is written."""
    entries = [{"tfReplicaType": "MASTER", "replicas": 1, "template": template("tensorflow")}]
    spec = {"replicaSpecs": entries}
    return manifest("kubeflow.org/v1alpha1", "TFJob", spec, name=name)


def first_pytorchjob(name: str) -> JSON:
    """Return a job in pytorch-operator's first form, which has the RuntimeId written into it."""
    entries = [{"replicaType": "MASTER", "replicas": 1, "template": template("pytorch")}]
    return manifest("kubeflow.org/v1alpha1", "PyTorchJob", {"replicaSpecs": entries}, name=name)


async def test_role_grants_exactly_what_is_used(start_cluster: StartCluster) -> None:
    jobs = [
        mxjob(name="one", RuntimeId="abcd"),
        mxjob(name="two", RuntimeId="abcd"),
        mxjob(name="three"),
        mxjob(group="fioravanzo.org", name="four"),
        bare_job("MXJob", "five"),
        bare_job("TFJob", "six", ps=1, worker=1),
        first_tfjob("six-and-a-half"),
        tfjob_of_tensorflow_org(name="six-and-two-thirds"),
        first_pytorchjob("six-and-three-quarters"),
        # Enough children to delete them together.
        training_job("JAXJob", "many", Worker=8),
    ]
    jobs[-1]["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}
    brief = [
        training_job("TFJob", "seven", Worker=1),
        scaled("eight", Master=1, Worker=1),
        training_job("XGBoostJob", "nine", Master=1),
        xgboost_operators_job(name="nine-and-a-half"),
        training_job("PaddleJob", "ten", Worker=1),
        training_job("JAXJob", "eleven", Worker=2),
        training_job("MPIJob", "twelve", Launcher=1, Worker=1),
        elastic_job(
            name="thirteen", worker={"replicas": 1, "maxReplicas": 1}, activeDeadlineSeconds=15
        ),
    ]
    async with start_cluster() as cluster:
        beyond = UNUSED_IN_A_REAL_WORLD
        if isinstance(cluster.server, ApiServer):
            FakeLaunchers(cluster.server, cluster.clock)
            await serve_workloads(cluster.user)
            beyond = frozenset()
        await take_names(cluster)
        await leave_jobs(cluster)
        refuse_streamed_lists(cluster)
        cluster.start()
        for job in jobs:
            await cluster.submit(job, {})
        await free_names(cluster)
        for job in jobs:
            await cluster.ended(job["metadata"]["name"])
        await two_restarts_in_a_row(cluster)
        for name in ("left", "left-new", "left-mpi"):
            await cluster.until(partial(is_ours, cluster, name))
        for each in (
            mxjob(name="brief"),
            mxjob(group="fioravanzo.org", name="brief"),
            tfjob_of_tensorflow_org(name="brief"),
        ):
            each["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": 0}
            await cluster.submit(each, {})
            await cluster.until(partial(is_gone, cluster, "brief"))
        await resume_launcher(cluster)
        await replace_launcher(cluster)
        await ask_to_scale(cluster, "thirteen")
        for job in brief:
            job["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": 0}
            await cluster.submit(job, {})
            await cluster.until(partial(is_gone, cluster, job["metadata"]["name"]))
        await cluster.settled()

        demanded = demanded_by_admission(KINDS) | delegated(KINDS)
        assert used(cluster.server) | demanded | beyond == granted()


def scaled(name: str, **counts: int) -> JSON:
    """Return a job with an autoscaler."""
    target = {"type": "Utilization", "averageUtilization": 80}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    job = training_job("PyTorchJob", name, **counts)
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 2, "metrics": [metric]}
    return job


async def ask_to_scale(cluster: ClusterHarness, name: str) -> None:
    """Submit requests that exceed the bounds of the job, which fail."""
    for resource, wish in ((SCALE_INS, "toDelete"), (SCALE_OUTS, "toAdd")):
        spec = {"selector": {"name": name}, wish: {"count": MAX_REPLICAS}}
        wire = manifest(resource.api_version, resource.kind, spec, name=wish.lower())
        wire["metadata"] = {"name": wish.lower()}
        await cluster.user.create(resource, cluster.namespace, wire)


async def resume_launcher(cluster: ClusterHarness) -> None:
    """Free the name of a launcher's Job; suspend that Job after its start, and resume it."""
    launcher, resource = cluster.key("mpi-launcher"), MPI.resource
    taken = {**batch_job(cluster, suspend=True), "metadata": {"name": launcher.name}}
    await cluster.user.create(BATCH_JOBS, cluster.namespace, taken)
    await cluster.submit(mpi_job(1, name="mpi"), {})
    await cluster.until(partial(has_event, cluster, "ErrResourceExists"))
    await cluster.user.delete(BATCH_JOBS, launcher, propagation="Background")
    await cluster.until(partial(has_event, cluster, "SuccessfulCreateJob"))
    if isinstance(cluster.server, ApiServer):
        # No controller of Jobs runs here.
        started = {"status": {"startTime": "2026-01-01T12:00:00Z"}}
        await cluster.user.patch(BATCH_JOBS, launcher, started, subresource="status")
    for suspended in (True, False):
        patch = {"spec": {"runPolicy": {"suspend": suspended}}}
        await cluster.user.patch(resource, cluster.key("mpi"), patch)
        event = "MPIJobSuspended" if suspended else "MPIJobResumed"
        await cluster.until(partial(has_event, cluster, event))
        await cluster.settled()
    await cluster.user.delete(resource, cluster.key("mpi"))


async def replace_launcher(cluster: ClusterHarness) -> None:
    """Restart a job by its failure policy: the Job of its launcher is deleted."""
    job = mpi_job(1, name="mpi-again", policy={"failurePolicy": {"maxRestarts": 1}})
    await cluster.submit(job, {"worker-0": [Exit(1), KEEPS_RUNNING]})
    await cluster.until(lambda: "SuccessfulDeleteJob" in cluster.events("mpi-again"))
    await cluster.user.delete(MPI.resource, cluster.key("mpi-again"))


def has_event(cluster: ClusterHarness, reason: str) -> bool:
    return reason in cluster.events("mpi")


def is_gone(cluster: ClusterHarness, name: str) -> bool:
    try:
        cluster.job(name)
    except LookupError:
        return True
    return False


async def take_names(cluster: ClusterHarness) -> None:
    """Occupy the names of a pod and a service of the job, so that the controller gets them."""
    pod = {"metadata": {"name": "one-worker-abcd-0"}, **template()}
    service = {"metadata": {"name": "two-scheduler-abcd-0"}, "spec": {"ports": [{"port": 80}]}}
    await cluster.user.create(PODS, cluster.namespace, pod)
    await cluster.user.create(SERVICES, cluster.namespace, service)


async def leave_jobs(cluster: ClusterHarness) -> None:
    """Create jobs as left by training-operator, with children without our labels."""
    for left in (
        scaled("left", Worker=1),
        # Children of a job without a status are found by name when they are created.
        scaled("left-new", Worker=1),
        training_job("MPIJob", "left-mpi", Launcher=1),
    ):
        job = await cluster.submit(left)
        resource = kind_of("kubeflow.org/v1", left["kind"]).resource
        created = {"type": "Created", "status": "True", "reason": f"{left['kind']}Created"}
        body = {"status": {"conditions": [created]}}
        name = left["metadata"]["name"]
        if name != "left-new":
            await cluster.user.patch(resource, cluster.key(name), body, subresource="status")
        for child, own in operator_children(renderer_of({**left, **job})):
            await cluster.user.create(child, cluster.namespace, own)


def is_ours(cluster: ClusterHarness, name: str) -> bool:
    there = [
        child
        for resource in (PODS, SERVICES, *DEPENDENTS)
        for child in cluster.owned(resource, cluster.job(name))
    ]
    return all(MANAGED_BY_LABEL in child["metadata"]["labels"] for child in there)


async def free_names(cluster: ClusterHarness) -> None:
    for name, resource in (("one", PODS), ("two", SERVICES)):
        await cluster.until(partial(cluster.condition, "Waiting", name))
        taken = next(o for o in cluster.objects(resource) if not owner_uid(o))
        key = cluster.key(taken["metadata"]["name"])
        await cluster.user.delete(resource, key)


def refuse_streamed_lists(cluster: ClusterHarness) -> None:
    """Disable streamed lists, so that every resource is listed in pages once."""
    dependents = [resource.group_resource for resource in DEPENDENTS]
    jobs = [each.group_resource for kind in KINDS for each in (kind.resource, *kind.scalers)]
    for resource in (
        "pods",
        "services",
        "nodes",
        "jobs.batch",
        WORKLOADS.group_resource,
        *dependents,
        *jobs,
    ):
        refusal = status.bad_request("sendInitialEvents is forbidden for watch")
        cluster.server.faults.add(
            Fault(verb="watch", resource=resource, user_agent="dlctl", status=refusal)
        )


async def two_restarts_in_a_row(cluster: ClusterHarness) -> None:
    """Repeat an event, which is a patch."""
    manifest = mxjob(name="again")
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    await cluster.submit(manifest, {"worker-0": [Exit(143), Exit(143), KEEPS_RUNNING]})
    await cluster.ended("again")


def test_role_has_no_wildcards() -> None:
    assert not [grant for grant in granted() if "*" in "".join(grant)]


def test_role_grants_nothing_twice() -> None:
    rules = role()["rules"]
    single = [
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]
    assert len(single) == len(set(single))
