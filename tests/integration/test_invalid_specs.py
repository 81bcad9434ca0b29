"""Specs of started jobs that become invalid: state and policies are kept."""

from collections.abc import Callable
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.builders import kind_of, mxjob
from tests.integration.kubeflow import (
    change,
    conditions,
    forever,
    job_of,
    lift_rules,
    only,
    running,
)
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

KIND = "PyTorchJob"
BROKEN: JSON = {"pytorchReplicaSpecs": {"Worker": {"template": {"metadata": {"labels": {"a": 1}}}}}}
MENDED: JSON = {"pytorchReplicaSpecs": {"Worker": {"template": {"metadata": None}}}}
OUTCOMES = {**forever("master-0"), "worker-0": [KEEPS_RUNNING]}


def job(**run_policy: Any) -> JSON:
    return job_of(KIND, {"Master": 1, "Worker": 1}, policy="ExitCode", run_policy=run_policy)


async def started(cluster: ClusterHarness, **run_policy: Any) -> None:
    """Run a job, then make its spec invalid."""
    await lift_rules(cluster, kind_of("kubeflow.org/v1", KIND))
    await cluster.submit(job(**run_policy), OUTCOMES)
    await running(cluster)
    await cluster.until(lambda: len(cluster.pods()) == 2)
    await cluster.settled()
    await change(cluster, KIND, BROKEN)


Restart = Callable[[ClusterHarness], Any]


async def kept(cluster: ClusterHarness) -> None:
    """Keep the same controller, which knows the last valid spec."""


async def restarted(cluster: ClusterHarness) -> None:
    await cluster.kill_all()
    cluster.start()


MEMORIES = pytest.mark.parametrize("then", [kept, restarted])


@MEMORIES
async def test_invalid_edit_does_not_fail_a_running_job(
    then: Restart, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster)
        await then(cluster)
        await cluster.until(lambda: "labels" in cluster.condition("Waiting"))
        await cluster.settled()
        assert conditions(cluster) == [
            ("Waiting", "True", "PyTorchJobInvalid"),
            ("Created", "True", "PyTorchJobCreated"),
            ("Running", "True", "PyTorchJobRunning"),
        ]
        assert "labels" in cluster.events()["PyTorchJobInvalid"]
        assert len(cluster.pods()) == 2

        await change(cluster, KIND, MENDED)
        await cluster.until(lambda: not cluster.condition("Waiting"))
        assert len(cluster.pods()) == 2


@MEMORIES
async def test_invalid_suspended_job_stays_suspended_until_corrected(
    then: Restart, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster)
        await then(cluster)
        await change(cluster, KIND, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: cluster.condition("Suspended") and not cluster.pods())
        assert not cluster.condition("Failed")

        await change(cluster, KIND, {"runPolicy": {"suspend": False}, **MENDED})
        await cluster.until(lambda: len(cluster.pods()) == 2)


def deep() -> JSON:
    """Return an edit of a template beyond the nesting limit."""
    value: Any = 1
    for _ in range(200):
        value = [value]
    worker = {"template": {"spec": {"unknown": value}}}
    return {"pytorchReplicaSpecs": {"Worker": worker}}


def many() -> JSON:
    """Return an edit with more errors than are handled one by one."""
    amounts = {f"example.com/{n}": "1e999" for n in range(30)}
    return {"runPolicy": {"schedulingPolicy": {"minResources": amounts}}}


@MEMORIES
@pytest.mark.parametrize("broken", [deep(), many()], ids=["nested deep", "many errors"])
async def test_suspended_job_stays_suspended_however_invalid_its_spec(
    then: Restart, broken: JSON, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster)
        await change(cluster, KIND, {**MENDED, **broken})
        await then(cluster)
        await cluster.until(lambda: cluster.condition("Waiting"))
        await change(cluster, KIND, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: cluster.condition("Suspended") and not cluster.pods())

        # Nor does an edit start a job that waits for quota.
        await change(cluster, KIND, {"unknown": 1})
        await cluster.settled()
        assert cluster.condition("Suspended")
        assert not cluster.pods()


@MEMORIES
async def test_invalid_running_job_keeps_its_deadline_clean_up_and_ttl(
    then: Restart, start_cluster: StartCluster
) -> None:
    policy = {
        "activeDeadlineSeconds": 100, "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 50,
    }  # fmt: skip
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster, **policy)
        await then(cluster)
        await cluster.until(lambda: cluster.condition("Failed"))
        assert "longer than specified deadline" in cluster.condition("Failed")
        assert cluster.status()["completionTime"]
        await cluster.until(lambda: not cluster.pods())
        await cluster.until(lambda: not cluster.objects(kind_of("kubeflow.org/v1", KIND).resource))


@MEMORIES
async def test_invalid_running_job_ends_with_its_chief(
    then: Restart, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster)
        await then(cluster)
        await cluster.until(lambda: cluster.condition("Waiting"))
        pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.objects(PODS)}
        await cluster.node.finish(pods["linear-master-0"])
        await cluster.until(lambda: cluster.condition("Succeeded"))
        assert not cluster.condition("Waiting")


async def test_failed_replica_is_replaced_by_the_last_valid_spec(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await started(cluster)
        await cluster.until(lambda: cluster.condition("Waiting"))
        await cluster.user.delete(PODS, cluster.key("linear-worker-0"))
        await cluster.until(lambda: len(cluster.pods()) == 1)
        await cluster.until(lambda: len(cluster.pods()) == 2)


async def test_finished_job_with_an_undecodable_spec_is_cleaned_up(
    start_cluster: StartCluster,
) -> None:
    jobs = kind_of().resource
    async with start_cluster() as cluster:
        first = cluster.start()
        await cluster.submit(mxjob(runPolicy={"ttlSecondsAfterFinished": 10}), {})
        await cluster.ended()
        await first.kill()
        chief = {"replicaName": "WORKER", "replicaIndex": 7}
        patch = {"spec": {"terminationPolicy": {"chief": chief}}}
        await cluster.user.patch(jobs, cluster.key(), patch)
        cluster.start()
        await cluster.until(lambda: not cluster.objects(jobs))


async def test_job_with_a_name_given_twice_fails_before_anything_is_created(
    start_cluster: StartCluster,
) -> None:
    wire = job()
    pod = wire["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "emptyDir": {}}] * 2
    async with start_cluster(kinds=only(KIND)) as cluster:
        cluster.start()
        await cluster.submit(wire)
        await cluster.until(lambda: cluster.condition("Failed"))
        assert cluster.condition("Failed") == (
            "spec.pytorchReplicaSpecs.Worker.template.spec.volumes[1].name: is 'data', as another "
            "volume's is: change one of them"
        )
        assert conditions(cluster)[-1][2] == "PyTorchJobInvalid"
        assert not {reason for reason in cluster.events() if "Create" in reason}
