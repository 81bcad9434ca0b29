"""Jobs of every dialect end to end: admission, run, end, clean-up and events."""

from collections.abc import Mapping

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, PODS, SERVICES
from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.mxnet import MXJob
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.builders import bare_job, kind_of, mxjob, template, tfjob_of_tensorflow_org
from tests.builders import manifest as build
from tests.integration.replicas import pod_of, replicas
from tests.sample_framework.ring_dlctl import RingJob
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING
from tests.support.typed_clients import undecodable_status

ALL = ["scheduler-0", "server-0", "worker-0", "worker-1"]
FIRST_TF = ["master-0", "ps-0", "worker-0", "worker-1"]
TF = ["ps-0", "worker-0", "worker-1"]


def replicas_of(objects: list[JSON]) -> list[str]:
    return replicas(obj["metadata"]["name"] for obj in objects)


def env(cluster: ClusterHarness, replica: str) -> Mapping[str, str]:
    container = pod_of(cluster, replica)["spec"]["containers"][0]
    return {variable["name"]: variable["value"] for variable in container["env"]}


@pytest.mark.parametrize(
    ("manifest", "pods", "services"),
    [
        pytest.param(mxjob(), ALL, ["scheduler-0"], id="kubeflow.org"),
        pytest.param(mxjob(group="fioravanzo.org"), ALL, ALL, id="fioravanzo.org"),
        pytest.param(tfjob_of_tensorflow_org(), FIRST_TF, FIRST_TF, id="tensorflow.org"),
        pytest.param(bare_job(), ALL, ALL, id="mpba.fbk.eu"),
        pytest.param(bare_job("TFJob", ps=1, worker=2), TF, TF, id="mpba.fbk.eu TFJob"),
    ],
)
async def test_job_gets_its_children_and_runs_to_success(
    manifest: JSON, pods: list[str], services: list[str], start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        chief = {"TFJob": "worker-0", "TfJob": "master-0"}.get(manifest["kind"], "scheduler-0")
        job = await cluster.submit(manifest, {chief: [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.status().get("phase") == "Running")

        children = cluster.owned(PODS, job) + cluster.owned(SERVICES, job)
        assert replicas_of(cluster.owned(PODS, job)) == pods
        assert replicas_of(cluster.owned(SERVICES, job)) == services
        assert {c["metadata"]["labels"][MANAGED_BY_LABEL] for c in children} == {MANAGED_BY}
        assert cluster.condition("Running")
        # Empty but present: readers of the old operator's status may expect it.
        assert cluster.status()["reason"] == ""

        # A killed controller records no more of them.
        await cluster.until(lambda: "SuccessfulCreate" in cluster.events())
        await cluster.kill_all()
        await end(cluster, chief)
        cluster.start()
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        assert status["startTime"] <= status["completionTime"]
        assert "failure" not in status
        await cluster.settled()
        assert cluster.condition("Succeeded")
        assert f"{manifest['kind']}Succeeded" in cluster.events()


async def end(cluster: ClusterHarness, replica: str) -> None:
    """Make one replica succeed, whatever its script says."""
    await cluster.node.finish(pod_of(cluster, replica)["metadata"]["uid"])


async def test_local_job_is_one_process_without_services(start_cluster: StartCluster) -> None:
    chief = {"chief": {"replicaName": "WORKER", "replicaIndex": 0}}
    manifest = mxjob(jobMode="local", terminationPolicy=chief, cleanupPodPolicy="None")
    async with start_cluster() as cluster:
        cluster.start()
        job = await cluster.submit(manifest, {})
        assert (await cluster.ended())["state"] == "Succeeded"
        assert replicas_of(cluster.owned(PODS, job)) == ["worker-0"]
        assert not cluster.owned(SERVICES, job)
        assert "env" not in cluster.objects(PODS)[0]["spec"]["containers"][0]


async def test_framework_of_another_package_runs_end_to_end(start_cluster: StartCluster) -> None:
    theirs = served_kinds({"MXJob": MXJob, "RingJob": RingJob})
    async with start_cluster(kinds=theirs) as cluster:
        cluster.start()
        await cluster.submit(bare_job("RingJob", master=1, worker=2), script=None)
        await cluster.until(lambda: len(cluster.pods()) == 3)
        assert env(cluster, "worker-1")["RING_RANK"] == "2"
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await end(cluster, "master-0")
        assert (await cluster.ended())["state"] == "Succeeded"


async def test_jobs_with_a_common_name_prefix_keep_their_own_children(
    start_cluster: StartCluster,
) -> None:
    name = "a-name-that-is-longer-than-forty-characters"
    async with start_cluster() as cluster:
        cluster.start()
        first = await cluster.submit(mxjob(name=f"{name}-1"), {})
        second = await cluster.submit(mxjob(name=f"{name}-2", cleanupPodPolicy="None"), {})
        for suffix in (1, 2):
            assert (await cluster.ended(f"{name}-{suffix}"))["state"] == "Succeeded"
        await cluster.settled()
        assert not cluster.owned(PODS, first)
        assert len(cluster.owned(PODS, second)) == 4


def listed_tf_job() -> JSON:
    """Return a TFJob in tf-operator's list form."""
    pod = template("tensorflow")
    entries = [
        {"tfReplicaType": type_, "replicas": count, "template": pod}
        for type_, count in (("MASTER", 1), ("PS", 1), ("WORKER", 2))
    ]
    return build("kubeflow.org/v1alpha1", "TFJob", {"replicaSpecs": entries})


@pytest.mark.parametrize(
    ("manifest", "chief"),
    [
        pytest.param(listed_tf_job(), "master-0", id="TFJob"),
        pytest.param(mxjob(), "scheduler-0", id="MXJob"),
    ],
)
async def test_list_form_statuses_always_decode_in_typed_clients(
    manifest: JSON, chief: str, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        kind = kind_of("kubeflow.org/v1", manifest["kind"])
        seen: list[JSON] = []

        def notice(change: StorageEvent) -> None:
            if change.table == table_of(kind.resource) and change.new is not None:
                seen.append(change.new.decoded(kind.resource).get("status") or {})

        cluster.server.storage.observers.append(notice)
        cluster.start()
        runs_on = dict.fromkeys((chief, "worker-0", "worker-1"), (KEEPS_RUNNING,))
        await cluster.submit(manifest, runs_on, last_replica=chief)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        workers = {"active": 2}
        await cluster.until(lambda: cluster.status()["replicaStatuses"]["Worker"] == workers)
        await end(cluster, chief)
        assert (await cluster.ended())["replicaStatuses"]["Worker"] == workers
        assert [undecodable_status(status) for status in seen] == [""] * len(seen)
