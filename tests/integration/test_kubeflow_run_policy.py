"""Run policies of Kubeflow's kinds: limits and clean-up."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import kind_of
from tests.integration.kubeflow import (
    KINDS,
    Outcomes,
    change,
    conditions,
    forever,
    job_of,
    only,
    phases,
    running,
)
from tests.integration.replicas import replicas
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit, Outcome


@pytest.mark.parametrize("kind", KINDS)
async def test_job_fails_at_its_active_deadline_without_other_events(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, run_policy={"activeDeadlineSeconds": 2, "cleanPodPolicy": "Running"})
        workers = forever("worker-0", "worker-1", "worker-2")
        await cluster.submit(job, {**workers, **forever()})
        ended = await cluster.ended()
        assert cluster.condition("Failed") == (
            "Job linear has failed because it was active longer than specified deadline"
        )
        assert conditions(cluster)[-1] == ("Failed", "True", f"{kind}Failed")
        assert ended["completionTime"]
        await cluster.until(lambda: not cluster.pods() and not cluster.services())


@pytest.mark.parametrize("kind", KINDS)
async def test_restarts_by_exit_code_count_towards_the_backoff_limit(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, policy="ExitCode", run_policy={"backoffLimit": 2})
        await cluster.submit(job, {"worker-1": [Exit(137), Exit(137), DONE]})
        ended = await cluster.ended()
        reason, cause = cluster.condition("Failed").split(". First cause: ")
        assert reason == "Job linear has failed because it has reached the specified backoff limit"
        assert cause.startswith("Unknown, worker-1 (")
        assert "exit code 137" in cause
        assert ended["dlctl"]["failure"]["reason"] == "BackoffLimitExceeded"
        assert ended["completionTime"]


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
@pytest.mark.parametrize("kind", KINDS)
async def test_failure_with_a_backoff_limit_of_0_is_one_of_the_limit(
    kind: str, policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, policy=policy, run_policy={"backoffLimit": 0})
        others = {**forever(), **forever("worker-1", "worker-2")}
        await cluster.submit(job, {**others, "worker-0": [Exit(3)]}, last_replica="worker-0")
        ended = await cluster.ended()
        reason, cause = cluster.condition("Failed").split(". First cause: ")
        assert reason == "Job linear has failed because it has reached the specified backoff limit"
        assert "worker-0" in cause
        assert "exit code 3" in cause
        assert conditions(cluster)[-1] == ("Failed", "True", f"{kind}Failed")
        assert ended["dlctl"]["failure"]["exitCode"] == 3
        assert "Restarting" not in str(ended["conditions"])


async def test_replica_that_reaches_the_backoff_limit_is_not_restarting(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.start()
        job = job_of("TFJob", policy="ExitCode", run_policy={"backoffLimit": 1})
        await cluster.submit(job, {"worker-0": [Exit(137)], **forever("worker-1", "worker-2")})
        await cluster.ended()
        assert conditions(cluster) == [
            ("Created", "True", "TFJobCreated"),
            ("Running", "False", "TFJobRunning"),
            ("Failed", "True", "TFJobFailed"),
        ]


async def test_restarts_in_place_count_towards_the_backoff_limit(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, run_policy={"backoffLimit": 2})
        restarting: Outcomes = {"worker-0": [Exit(1), Exit(1), KEEPS_RUNNING]}
        await cluster.submit(job, {**restarting, **forever("master-0")})
        await cluster.ended()
        assert "backoff limit" in cluster.condition("Failed")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", [None, "None", "Running"])
async def test_deadline_deletes_pods_that_have_not_ended_whatever_the_clean_up(
    policy: str | None, kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, run_policy={"cleanPodPolicy": policy} if policy else {})
        others = {**forever(), **forever("worker-0", "worker-2")}
        await cluster.submit(job, {"worker-1": [DONE], **others})
        await cluster.until(lambda: "Succeeded" in phases(cluster) and succeeded(cluster) == 1)
        await change(cluster, kind, {"runPolicy": {"activeDeadlineSeconds": 1}})
        await cluster.ended()
        await cluster.settled()
        assert replicas(cluster.pods()) == ["worker-1"]


async def test_reached_backoff_limit_deletes_pods_that_have_not_ended(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 2}, run_policy={"backoffLimit": 2})
        restarting: Outcomes = {"worker-0": [Exit(1), Exit(1), KEEPS_RUNNING]}
        await cluster.submit(job, {**restarting, **forever("master-0", "worker-1")})
        await cluster.ended()
        await cluster.until(lambda: not cluster.pods() and not cluster.services())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", [DONE, Exit(1)], ids=["succeeded", "failed"])
async def test_job_is_deleted_after_its_ttl_however_it_ended(
    last: Outcome, kind: str, start_cluster: StartCluster
) -> None:
    jobs = kind_of("kubeflow.org/v1", kind).resource
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, policy="ExitCode", run_policy={"ttlSecondsAfterFinished": 1})
        outcomes: Outcomes = {} if last == DONE else {"worker-0": [last], **forever()}
        await cluster.submit(job, outcomes, last_replica="" if last == DONE else "worker-0")
        await cluster.until(lambda: not cluster.objects(jobs) and not cluster.objects(PODS))
        ends = {f"{kind}Succeeded", f"{kind}Failed"}
        await cluster.until(lambda: ends.intersection(cluster.events()))
        expected = {f"{kind}{'Succeeded' if last == DONE else 'Failed'}"}
        assert ends.intersection(cluster.events()) == expected


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("None", ["master-0", "worker-0", "worker-1"], id="None"),
        pytest.param("Running", ["master-0", "worker-0"], id="Running"),
        pytest.param("All", [], id="All"),
        pytest.param("", ["master-0", "worker-0", "worker-1"], id="by default"),
    ],
)
async def test_services_are_deleted_with_their_pods(
    policy: str, left: list[str], start_cluster: StartCluster
) -> None:
    run_policy: JSON = {"cleanPodPolicy": policy} if policy else {}
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 2}, run_policy=run_policy)
        await cluster.submit(job, {"worker-1": [KEEPS_RUNNING]})
        await cluster.ended()
        await cluster.settled()
        assert replicas(cluster.pods()) == replicas(cluster.services()) == left


async def test_failed_deletion_of_a_service_is_retried(
    start_cluster: StartCluster,
) -> None:
    refused = Fault(
        verb="delete",
        resource="services",
        user_agent="dlctl",
        status=status.internal_error("not now"),
        times=2,
    )
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.server.faults.add(refused)
        cluster.start()
        job = job_of(
            "PyTorchJob", {"Master": 1, "Worker": 1}, run_policy={"cleanPodPolicy": "Running"}
        )
        await cluster.submit(job, {"worker-0": [KEEPS_RUNNING]})
        await cluster.ended()
        await cluster.until(lambda: replicas(cluster.services()) == ["master-0"])
        await cluster.settled()
        assert replicas(cluster.services()) == ["master-0"]


@pytest.mark.parametrize("kind", KINDS)
async def test_job_managed_by_another_controller_causes_no_writes(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, run_policy={"managedBy": "kueue.x-k8s.io/multikueue"})
        if kind == "MPIJob":
            # MultiKueue copies them as this version, so v1 refuses the value.
            job["apiVersion"] = "kubeflow.org/v2beta1"
        await cluster.submit(job)
        await cluster.advance(300)
        await cluster.settled()
        assert not cluster.history.writes()
        assert not cluster.status()
        assert not cluster.events()


async def test_job_managed_by_training_operator_is_reconciled(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("JAXJob")) as cluster:
        cluster.start()
        job = job_of("JAXJob", run_policy={"managedBy": "kubeflow.org/training-operator"})
        await cluster.submit(job, {})
        await cluster.ended()
        assert cluster.condition("Succeeded")


async def test_failure_by_a_limit_is_written_before_pods_are_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("JAXJob")) as cluster:
        cluster.start()
        job = job_of("JAXJob", run_policy={"cleanPodPolicy": "All"})
        await cluster.submit(job, forever("worker-0", "worker-1", "worker-2"))
        await cluster.until(lambda: phases(cluster) == ["Running"] * 3)
        await running(cluster)
        jobs = kind_of("kubeflow.org/v1", "JAXJob").resource
        conflict = status.conflict(jobs, "linear", "somebody else was faster")
        cluster.server.faults.add(
            Fault(
                verb="patch",
                resource=jobs.group_resource,
                user_agent="dlctl",
                status=conflict,
                times=3,
            )
        )
        await change(cluster, "JAXJob", {"runPolicy": {"activeDeadlineSeconds": 1}})
        await cluster.until(lambda: len(cluster.pods()) < 3)
        assert cluster.condition("Failed")


def succeeded(cluster: ClusterHarness) -> int:
    counts: JSON = cluster.status().get("replicaStatuses", {}).get("Worker", {})
    return int(counts.get("succeeded", 0))
