"""Bugs in frameworks: only their own jobs are affected, and report file and line."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from dlctl.api.job import ReplicaSpec
from dlctl.api.meta import EVENTS, PODS
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version, served_kinds
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.kubeflow.pytorch import PyTorchJob
from dlctl.frameworks.mxnet import MXJob
from tests.builders import bare_job, kind_of, training_job
from tests.integration.kubeflow import change, forever, only
from tests.integration.quick_deletions import finish_and_delete_at_once
from tests.integration.replicas import created
from tests.support.harness import ClusterHarness, StartCluster

HERE = "tests/integration/test_framework_faults.py:"


class BuggyJob(DLJob):
    """A framework with the bug that a test selects."""

    job_type = "BuggyJob"
    replica_types: ClassVar = ["master", "worker"]
    container_properties: ClassVar = {"name": "buggy", "ports": [4711]}
    bug: ClassVar[str] = ""

    def get_environment_variables(
        self, replica_spec: ReplicaSpec, replica_index: int
    ) -> Mapping[str, Any]:
        if self.bug == "raises":
            return {"HOSTS": [][replica_index]}
        return {"RANK": replica_index} if self.bug == "returns a number" else {}


def served() -> list[Kind]:
    return [
        k for k in served_kinds({"BuggyJob": BuggyJob, "MXJob": MXJob}) if "mpba" in str(k.resource)
    ]


def buggy(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    monkeypatch.setattr(BuggyJob, "bug", bug)


async def submit(cluster: ClusterHarness) -> None:
    kind = kind_of_api_version(cluster.kinds, "mpba.fbk.eu/v1", "BuggyJob")
    assert kind is not None
    wire = bare_job("BuggyJob", "buggy", master=1, worker=1)
    body = {**wire, "metadata": {"name": "buggy"}}
    await cluster.user.create(kind.resource, cluster.namespace, body)


@pytest.mark.parametrize(
    ("bug", "said"),
    [("raises", "IndexError: list index out of range"), ("returns a number", "type int for RANK")],
)
async def test_new_job_of_a_buggy_framework_fails_with_file_and_line(
    bug: str, said: str, start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    buggy(monkeypatch, bug)
    async with start_cluster(kinds=served()) as cluster:
        running = cluster.start()
        await submit(cluster)
        await cluster.submit(bare_job(), {})
        await cluster.until(lambda: cluster.status("buggy").get("phase") == "Failed")
        await cluster.until(lambda: "BuggyJobInvalid" in cluster.events("buggy"))
        assert (await cluster.ended())["state"] == "Succeeded"
        message = cluster.events("buggy")["BuggyJobInvalid"]
        assert said in message
        assert HERE in message
        assert not [name for name in cluster.pods() if name.startswith("buggy")]
        content_errors = running.manager.metrics.dlctl_content_errors_total
        labels = ("buggyjobs.mpba.fbk.eu", "rendering")
        assert content_errors.labels(*labels)._value.get() == 1


@pytest.mark.embedded_only("its kind has no definition that all tests share")
async def test_running_job_waits_until_the_frameworks_bug_is_fixed(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_cluster(kinds=served()) as cluster:
        cluster.start()
        await submit(cluster)
        await cluster.until(lambda: cluster.status("buggy").get("phase") == "Running")
        buggy(monkeypatch, "raises")
        worker = next(name for name in cluster.pods() if "worker" in name)
        await cluster.user.delete(PODS, cluster.key(worker))
        await cluster.until(lambda: HERE in cluster.condition("Waiting", "buggy"))
        await cluster.until(lambda: "FailedCreatePod" in cluster.events("buggy"))
        assert HERE in cluster.events("buggy")["FailedCreatePod"]
        assert len(cluster.pods()) == 1

        buggy(monkeypatch, "")
        await cluster.until(lambda: len(cluster.pods()) == 2)


@pytest.mark.embedded_only("its nodes have no room")
async def test_problems_of_pods_are_reported_once_whatever_befalls_their_job_meanwhile(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.node.has_room.clear()
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1))
        resource = kind_of("kubeflow.org/v1", "PyTorchJob").resource
        await cluster.until(cluster.pods)
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [unschedulable]}}
        pod = cluster.key("linear-master-0")
        await cluster.user.patch(PODS, pod, status, subresource="status")
        await cluster.until(lambda: "Unschedulable" in cluster.events())
        with monkeypatch.context() as patched:
            patched.setattr(PyTorchJob, "success_policy", lambda self: None)
            patch = {"spec": {"runPolicy": {"backoffLimit": 7}}}
            await cluster.user.patch(resource, cluster.key(), patch)
            await cluster.until(lambda: "Error" in cluster.condition("Waiting"))
        patch = {"spec": {"runPolicy": {"backoffLimit": 8}}}
        await cluster.user.patch(resource, cluster.key(), patch)
        await cluster.until(lambda: "Error" not in cluster.condition("Waiting"))
        await cluster.advance(30)
        found = [one for one in cluster.objects(EVENTS) if one["reason"] == "Unschedulable"]
        assert [one["count"] for one in found] == [1]


async def test_worker_that_completes_is_not_run_again_once_the_bug_is_fixed(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = training_job("PyTorchJob", Master=1, Worker=2)
        await cluster.submit(job, forever("master-0", "worker-0", "worker-1"))
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        with monkeypatch.context() as patched:
            patched.setattr(PyTorchJob, "success_policy", lambda self: None)
            await change(cluster, "PyTorchJob", {"runPolicy": {"backoffLimit": 7}})
            await cluster.until(lambda: "Error" in cluster.condition("Waiting"))
            await finish_and_delete_at_once(cluster, "worker-0")
            await cluster.settled()
        await change(cluster, "PyTorchJob", {"runPolicy": {"backoffLimit": 8}})
        await cluster.until(lambda: not cluster.condition("Waiting"))
        await cluster.settled()
        assert created(cluster, "worker-0") == 1
