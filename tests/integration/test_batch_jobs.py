"""Batch/v1 Jobs: the controller of the embedded cluster, held to that of a real one."""

import datetime

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, PODS
from dlctl.local.apiserver.server import ApiServer
from tests.support.batch_jobs import (
    NAME,
    condition,
    created,
    exists,
    finish,
    key,
    pods,
    reason,
    running,
    status,
)
from tests.support.harness import ClusterHarness, StartCluster

FINALIZER = "batch.kubernetes.io/job-tracking"


def finalizers(cluster: ClusterHarness) -> list[str]:
    return [name for pod in pods(cluster) for name in pod["metadata"].get("finalizers", ())]


def counts(cluster: ClusterHarness) -> JSON:
    names = ("active", "ready", "succeeded", "failed", "terminating")
    found = {name: status(cluster).get(name, 0) for name in names}
    return {name: count for name, count in found.items() if count}


async def patch(cluster: ClusterHarness, **spec: object) -> None:
    await cluster.user.patch(BATCH_JOBS, key(cluster), {"spec": spec})
    await cluster.sync()


async def test_job_is_complete_once_its_pod_has_succeeded(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        (pod,) = await running(cluster)
        assert counts(cluster) == {"active": 1, "ready": 1}
        assert pod["metadata"]["finalizers"] == [FINALIZER]
        assert pod["metadata"]["generateName"] == f"{NAME}-"
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("Job", True)

        await finish(cluster)

        await cluster.until(lambda: reason(cluster, "Complete"))
        assert [c["type"] for c in status(cluster)["conditions"]] == [
            "SuccessCriteriaMet",
            "Complete",
        ]
        assert reason(cluster, "Complete") == "CompletionsReached"
        ended = condition(cluster, "Complete")
        # A real controller takes the time twice.
        assert status(cluster)["completionTime"] <= ended["lastTransitionTime"]
        if isinstance(cluster.server, ApiServer):
            assert status(cluster)["completionTime"] == ended["lastTransitionTime"]
        assert counts(cluster) == {"succeeded": 1}
        assert status(cluster)["uncountedTerminatedPods"] == {}
        assert finalizers(cluster) == []
        await cluster.until(lambda: "Completed" in cluster.events(NAME))
        assert cluster.events(NAME) == {
            "SuccessfulCreate": f"Created pod: {pod['metadata']['name']}",
            "Completed": "Job completed",
        }


async def test_failed_pod_is_replaced_after_back_off(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        await finish(cluster, code=1)
        await cluster.until(lambda: counts(cluster) == {"failed": 1})
        (first,) = pods(cluster)

        await finish(cluster)

        await cluster.until(lambda: reason(cluster, "Complete"))
        assert counts(cluster) == {"succeeded": 1, "failed": 1}
        second = next(pod for pod in pods(cluster) if pod["metadata"] != first["metadata"])
        waited = created_at(second) - ended_at(first)
        assert datetime.timedelta(seconds=9) <= waited <= datetime.timedelta(seconds=13)


def created_at(pod: JSON) -> datetime.datetime:
    return datetime.datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def ended_at(pod: JSON) -> datetime.datetime:
    (container,) = pod["status"]["containerStatuses"]
    return datetime.datetime.fromisoformat(container["state"]["terminated"]["finishedAt"])


async def test_job_fails_beyond_its_back_off_limit_and_its_pods_are_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, backoffLimit=0, parallelism=2, completions=2)
        failed, other = await running(cluster, count=2)

        await cluster.node.finish(failed["metadata"]["uid"], 1)

        await cluster.until(lambda: reason(cluster, "Failed"))
        assert [c["type"] for c in status(cluster)["conditions"]] == ["FailureTarget", "Failed"]
        assert reason(cluster, "Failed") == "BackoffLimitExceeded"
        assert "completionTime" not in status(cluster)
        assert counts(cluster) == {"failed": 2}
        kept = [failed["metadata"]["uid"]]
        await cluster.until(lambda: [pod["metadata"]["uid"] for pod in pods(cluster)] == kept)
        await cluster.until(lambda: "BackoffLimitExceeded" in cluster.events(NAME))
        said = cluster.events(NAME)
        assert said["BackoffLimitExceeded"] == "Job has reached the specified backoff limit"
        assert said["SuccessfulDelete"] == f"Deleted pod: {other['metadata']['name']}"


async def test_restarts_of_containers_count_towards_the_back_off_limit(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, "OnFailure", backoffLimit=2)
        (pod,) = await running(cluster)
        body = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"containerStatuses": restarted(pod, 2)},
        }
        name = cluster.key(pod["metadata"]["name"])

        await cluster.user.patch(PODS, name, body, subresource="status")

        await cluster.until(lambda: reason(cluster, "Failed") == "BackoffLimitExceeded")
        assert counts(cluster) == {"failed": 1}


def restarted(pod: JSON, times: int) -> list[JSON]:
    return [each | {"restartCount": times} for each in pod["status"]["containerStatuses"]]


async def test_no_more_pods_run_than_are_still_to_succeed(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, parallelism=2, completions=3)
        first, second = await running(cluster, count=2)
        await cluster.node.finish(first["metadata"]["uid"])
        await cluster.until(lambda: counts(cluster) == {"active": 2, "ready": 2, "succeeded": 1})
        await cluster.node.finish(second["metadata"]["uid"])
        await cluster.until(lambda: counts(cluster) == {"active": 1, "ready": 1, "succeeded": 2})

        await finish(cluster)

        await cluster.until(lambda: reason(cluster, "Complete"))
        assert counts(cluster) == {"succeeded": 3}
        assert len(pods(cluster)) == 3


async def test_without_completions_one_success_is_enough(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, parallelism=2)
        first, second = await running(cluster, count=2)
        await cluster.node.finish(first["metadata"]["uid"])
        await cluster.until(lambda: counts(cluster) == {"active": 1, "ready": 1, "succeeded": 1})
        assert not reason(cluster, "SuccessCriteriaMet")

        await cluster.node.finish(second["metadata"]["uid"], 1)

        await cluster.until(lambda: reason(cluster, "Complete"))
        assert counts(cluster) == {"succeeded": 1, "failed": 1}


async def test_fewer_parallel_pods_are_not_failures(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, parallelism=2, completions=2)
        await running(cluster, count=2)

        await patch(cluster, parallelism=1)

        await running(cluster)
        await cluster.until(lambda: counts(cluster) == {"active": 1, "ready": 1})


async def test_suspended_job_has_no_pods_and_starts_when_resumed(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, suspend=True)
        await cluster.until(lambda: reason(cluster, "Suspended"))
        assert reason(cluster, "Suspended") == "JobSuspended"
        assert counts(cluster) == {}
        assert "startTime" not in status(cluster)
        assert pods(cluster) == []

        await patch(cluster, suspend=False)

        await running(cluster)
        resumed = condition(cluster, "Suspended")
        assert (resumed["status"], resumed["reason"]) == ("False", "JobResumed")
        assert status(cluster)["startTime"] == resumed["lastTransitionTime"]
        await finish(cluster)
        await cluster.until(lambda: reason(cluster, "Complete"))
        await cluster.until(lambda: "Completed" in cluster.events(NAME))
        assert cluster.events(NAME)["Suspended"] == "Job suspended"
        assert cluster.events(NAME)["Resumed"] == "Job resumed"


async def test_suspending_deletes_pods_without_counting_them(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        (pod,) = await running(cluster)
        first_start = status(cluster)["startTime"]

        await patch(cluster, suspend=True)

        await cluster.until(lambda: reason(cluster, "Suspended") and not pods(cluster))
        await cluster.until(lambda: counts(cluster) == {})
        deleted = f"Deleted pod: {pod['metadata']['name']}"
        await cluster.until(lambda: cluster.events(NAME).get("SuccessfulDelete") == deleted)
        await cluster.advance(2.0)
        await patch(cluster, suspend=False)
        await running(cluster)
        assert status(cluster)["startTime"] > first_start
        assert counts(cluster) == {"active": 1, "ready": 1}


async def test_suspended_job_that_has_not_started_takes_another_place(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        await running(cluster)
        await patch(cluster, suspend=True)
        await cluster.until(lambda: reason(cluster, "Suspended") and not counts(cluster))
        body = {"status": {"startTime": None}}
        await cluster.user.patch(BATCH_JOBS, key(cluster), body, subresource="status")

        template = {"metadata": {"labels": {"placed": "yes"}, "annotations": {"by": "queue"}}}
        await patch(cluster, template=template, suspend=False)

        (pod,) = await running(cluster)
        assert pod["metadata"]["labels"]["placed"] == "yes"
        assert pod["metadata"]["annotations"]["by"] == "queue"


async def test_job_fails_at_its_deadline(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, activeDeadlineSeconds=2)
        await cluster.until(lambda: reason(cluster, "Failed"))
        assert reason(cluster, "Failed") == "DeadlineExceeded"
        assert counts(cluster) == {"failed": 1}
        await cluster.until(lambda: not pods(cluster))


async def test_deleted_pod_counts_as_failed(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        (pod,) = await running(cluster)

        await cluster.user.delete(PODS, cluster.key(pod["metadata"]["name"]))

        await cluster.until(lambda: status(cluster).get("failed") == 1)
        (other,) = await running(cluster)
        assert other["metadata"]["uid"] != pod["metadata"]["uid"]


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
async def test_terminating_pod_is_replaced_as_its_policy_says(
    policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, podReplacementPolicy=policy, backoffLimit=0)
        (pod,) = await running(cluster)
        held = {"metadata": {"finalizers": [FINALIZER, "example.com/hold"]}}
        name = cluster.key(pod["metadata"]["name"])
        await cluster.user.patch(PODS, name, held)

        await cluster.user.delete(PODS, name)

        # The node reports the phase Failed all the same.
        await cluster.until(lambda: reason(cluster, "Failed") == "BackoffLimitExceeded")
        assert counts(cluster) == {"failed": 1}
        await cluster.user.patch(PODS, name, {"metadata": {"finalizers": None}})
        await cluster.until(lambda: not pods(cluster))


async def test_finished_job_is_deleted_with_its_pods_after_its_time_to_live(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, ttlSecondsAfterFinished=2)
        await finish(cluster)
        await cluster.until(lambda: reason(cluster, "Complete"))
        assert len(pods(cluster)) == 1

        await cluster.until(lambda: not exists(cluster))

        await cluster.until(lambda: not pods(cluster))


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_pods_are_deleted_with_their_job(policy: str, start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        await running(cluster)

        await cluster.user.delete(BATCH_JOBS, key(cluster), propagation=policy)

        await cluster.until(lambda: not exists(cluster) and not pods(cluster))


async def test_pods_stay_without_a_propagation_policy(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster)
        await running(cluster)

        await cluster.user.delete(BATCH_JOBS, key(cluster))

        await cluster.until(lambda: not exists(cluster) and not finalizers(cluster))
        (pod,) = pods(cluster, "Running")
        assert "ownerReferences" not in pod["metadata"]


async def test_job_of_another_controller_is_left_alone(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=()) as cluster:
        await created(cluster, managedBy="example.com/other")
        await cluster.advance(2.0)
        assert pods(cluster) == []
        assert status(cluster) == {}
