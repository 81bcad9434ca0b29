"""MPIJobs of v2beta1 with a failure policy, which decides instead of the launcher's Job."""

import asyncio
from collections.abc import Mapping

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, PODS, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.options import Options
from tests.integration.mpi_jobs import (
    JOB,
    MPI,
    condition,
    counts,
    finish_launcher,
    is_true,
    launcher_job,
    pods,
    set_suspended,
    submit,
)
from tests.mpi_v2beta1 import mpi_job
from tests.support.fake_kubelet import NODE_NAME
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import Evicted, Exit

FAST = Options(restart_backoff_s=1.0, restart_backoff_cap_s=2.0)
ATTEMPT_LABEL = "dlctl.dev/restart-attempt"


def policed(*rules: JSON, clean: str = "Running", **policy: object) -> JSON:
    failures = {"rules": list(rules), **policy}
    return mpi_job(policy={"cleanPodPolicy": clean, "failurePolicy": failures})


def attempts(cluster: ClusterHarness) -> set[str]:
    """Return the attempts that the present pods and the launcher's Job belong to."""
    found = [*cluster.objects(PODS), *cluster.objects(BATCH_JOBS)]
    return {each["metadata"]["labels"][ATTEMPT_LABEL] for each in found}


def own(cluster: ClusterHarness) -> JSON:
    found: JSON = cluster.status(JOB).get("dlctl") or {}
    return found


def uids(cluster: ClusterHarness, role: str) -> Mapping[str, str]:
    running = pods(cluster, role, "Running")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in running}


async def runs(cluster: ClusterHarness, attempt: int) -> None:
    """Wait until an attempt of the whole job runs."""
    await cluster.until(lambda: own(cluster).get("jobRestarts", 0) == attempt)
    await cluster.until(lambda: is_true(cluster, "Running") and attempts(cluster) == {str(attempt)})


async def test_failed_launcher_restarts_the_whole_job(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed(maxRestarts=1))
        await runs(cluster, 0)
        first, workers = launcher_job(cluster), uids(cluster, "worker")
        assert first["spec"]["backoffLimit"] == 0
        assert first["spec"]["template"]["spec"]["restartPolicy"] == "Never"
        await finish_launcher(cluster, 3)
        await cluster.until(lambda: is_true(cluster, "Restarting"))
        await runs(cluster, 1)
        assert launcher_job(cluster)["metadata"]["uid"] != first["metadata"]["uid"]
        assert not set(workers.values()) & set(uids(cluster, "worker").values())
        attempt = own(cluster)["attempts"][0]
        assert (attempt["replica"], attempt["exitCode"]) == ("launcher-0", 3)
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded"))
        await cluster.until(lambda: not pods(cluster, "worker"))
        assert [p["status"]["phase"] for p in pods(cluster, "launcher")] == ["Succeeded"]


@pytest.mark.embedded_only("it measures compacted time")
async def test_launcher_that_fails_again_and_again_waits_for_the_back_off_of_its_job_alone(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed(maxRestarts=5))
        start_s = asyncio.get_running_loop().time()
        for attempt in range(5):
            await runs(cluster, attempt)
            await finish_launcher(cluster, 3)
        await runs(cluster, 5)
        # At most two seconds each, and those until its pods are gone.
        assert asyncio.get_running_loop().time() - start_s < 20


async def test_pods_of_an_attempt_know_its_number(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed(maxRestarts=1), worker_1=Exit(3))
        await runs(cluster, 1)
        for pod in cluster.objects(PODS):
            env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
            assert env["DLCTL_RESTART_ATTEMPT"] == "1"
            assert pod["metadata"]["annotations"][ATTEMPT_LABEL] == "1"
            assert pod["spec"]["restartPolicy"] == "Never"
        attempt = own(cluster)["attempts"][0]
        assert (attempt["replica"], attempt["exitCode"]) == ("worker-1", 3)


async def test_used_up_restarts_fail_the_job(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed(maxRestarts=1))
        await runs(cluster, 0)
        await finish_launcher(cluster, 3)
        await runs(cluster, 1)
        await finish_launcher(cluster, 4)
        await cluster.until(lambda: is_true(cluster, "Failed"))
        failed = condition(cluster, "Failed")
        assert failed["reason"] == "ReachedMaxRestarts"
        assert "exit code 4" in failed["message"]
        await cluster.until(lambda: not pods(cluster, "worker"))
        assert counts(cluster)["Launcher"] == {"failed": 1}
        await cluster.until(lambda: launcher_job(cluster)["status"].get("failed") == 1)
        assert launcher_job(cluster)["spec"]["suspend"] is False


async def test_job_that_fails_with_a_worker_stops_its_launcher(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
        await submit(cluster, policed(rule, clean="None", maxRestarts=5), worker_1=Exit(42))
        await cluster.until(lambda: is_true(cluster, "Failed"))
        assert condition(cluster, "Failed")["reason"] == "FailJobAction"
        await cluster.until(lambda: not pods(cluster, "launcher"))
        await cluster.until(lambda: cluster.phase(JOB) == "Done")
        assert uids(cluster, "worker")


async def test_rule_replaces_a_worker_alone(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        rule = {"action": "RestartReplica", "targetReplicas": ["Worker"]}
        await submit(cluster, policed(rule, maxRestarts=1), worker_1=Exit(3))
        await cluster.until(lambda: own(cluster).get("countedRestarts") == 1)
        launcher = launcher_job(cluster)["metadata"]["uid"]
        await cluster.until(lambda: len(own(cluster)["attempts"]) == 2)
        assert set(uids(cluster, "worker")) == {"pi-worker-0", "pi-worker-1"}
        assert launcher_job(cluster)["metadata"]["uid"] == launcher
        assert attempts(cluster) == {"0"}


async def test_rule_replaces_the_launcher_alone(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        rule = {"action": "RestartReplica", "targetReplicas": ["Launcher"]}
        await submit(cluster, policed(rule, maxRestarts=1))
        await runs(cluster, 0)
        launcher, workers = launcher_job(cluster)["metadata"]["uid"], uids(cluster, "worker")
        await finish_launcher(cluster, 3)
        await cluster.until(lambda: len(own(cluster).get("attempts", ())) == 2)
        assert launcher_job(cluster)["metadata"]["uid"] != launcher
        assert uids(cluster, "worker") == workers
        assert (own(cluster)["countedRestarts"], attempts(cluster)) == (1, {"0"})
        await finish_launcher(cluster)
        await cluster.until(lambda: is_true(cluster, "Succeeded"))


async def test_deleted_launcher_is_replaced_alone_if_a_rule_says_so(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed({"action": "RestartReplica"}))
        await runs(cluster, 0)
        launcher, workers = launcher_job(cluster)["metadata"]["uid"], uids(cluster, "worker")
        (pod,) = uids(cluster, "launcher")
        await cluster.user.delete(PODS, cluster.key(pod))
        await cluster.until(lambda: len(own(cluster).get("attempts", ())) == 2)
        assert launcher_job(cluster)["metadata"]["uid"] != launcher
        assert uids(cluster, "worker") == workers
        assert "countedRestarts" not in own(cluster)


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
async def test_deleted_launcher_job_restarts_the_job(
    propagation: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed())
        await runs(cluster, 0)
        key = cluster.key("pi-launcher")
        await cluster.user.delete(BATCH_JOBS, key, propagation=propagation)
        await runs(cluster, 1)
        assert "countedRestarts" not in own(cluster)


async def test_evictions_do_not_count(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await submit(cluster, policed(maxRestarts=0), worker_1=Evicted())
        await runs(cluster, 1)
        assert "countedRestarts" not in own(cluster)


async def test_no_two_attempts_meet(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        seen: list[set[str]] = []
        cluster.server.storage.observers.append(lambda _: seen.append(attempts(cluster)))
        await submit(cluster, policed(maxRestarts=2), worker_1=Exit(3))
        await runs(cluster, 1)
        await finish_launcher(cluster, 1)
        await runs(cluster, 2)
        assert {frozenset(each) for each in seen} <= {
            frozenset(), *(frozenset({str(number)}) for number in range(3))
        }  # fmt: skip


async def test_job_suspended_during_a_restart_goes_on_with_the_next_attempt(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[MPI], options=Options(restart_backoff_s=30.0)) as cluster:
        await submit(cluster, policed(maxRestarts=1))
        await runs(cluster, 0)
        await finish_launcher(cluster, 3)
        await cluster.until(lambda: is_true(cluster, "Restarting"))
        await set_suspended(cluster, suspended=True)
        await cluster.until(lambda: is_true(cluster, "Suspended") and not cluster.pods())
        await cluster.until(lambda: attempts(cluster) == {"1"})
        assert launcher_job(cluster)["spec"]["suspend"] is True
        await set_suspended(cluster, suspended=False)
        await runs(cluster, 1)


async def test_deadline_is_that_of_all_attempts(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        job = policed(maxRestarts=5)
        job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 60
        await submit(cluster, job)
        await runs(cluster, 0)
        assert "activeDeadlineSeconds" not in launcher_job(cluster)["spec"]
        await cluster.advance(40)
        await finish_launcher(cluster, 3)
        await runs(cluster, 1)
        await cluster.advance(30)
        await cluster.until(lambda: is_true(cluster, "Failed"))
        assert condition(cluster, "Failed")["reason"] == "DeadlineExceeded"
        assert own(cluster)["attempts"][-1]["cause"] == "Deadline"
        await cluster.until(lambda: not pods(cluster, "launcher") and not pods(cluster, "worker"))


@pytest.mark.embedded_only("it taints the only node")
async def test_whole_job_leaves_a_draining_node(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=[MPI], options=FAST) as cluster:
        await cluster.user.create(NODES, "", {"metadata": {"name": NODE_NAME}})
        await submit(cluster, policed())
        await runs(cluster, 0)
        taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
        body = {"spec": {"taints": taints}}
        await cluster.user.patch(NODES, ObjectKey("", NODE_NAME), body)
        await runs(cluster, 1)
        assert own(cluster)["attempts"][0]["cause"] == "ScaleDown"
        assert "countedRestarts" not in own(cluster)
