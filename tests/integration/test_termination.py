"""What happens to a job for each way in which its replicas terminate."""

import asyncio
from functools import partial
from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.api.objects.jobs import MAX_STORED_BYTES
from dlctl.local.apiserver.faults import Fault
from tests.builders import kind_of, mxjob
from tests.integration.quick_deletions import finish_and_delete_at_once
from tests.integration.replicas import created, pod_of, replicas
from tests.integration.stored_jobs import with_large_template
from tests.support.fake_pods import is_running
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, OOM_KILLED, Deleted, Evicted, Exit, Outcome


def never(**spec: Any) -> JSON:
    """Return a job whose pods the kubelet does not restart."""
    manifest = mxjob(cleanupPodPolicy="None", **spec)
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


async def run_all(cluster: ClusterHarness, manifest: JSON) -> None:
    """Start a controller and a job; the replicas that decide its end run until they are stopped."""
    cluster.start()
    deciding = ("scheduler-0", "worker-0", "worker-1")
    await cluster.submit(manifest, dict.fromkeys(deciding, (KEEPS_RUNNING,)))
    await cluster.until(lambda: cluster.phase() == "Running")
    await cluster.settled()


@pytest.mark.parametrize(
    ("outcome", "reason", "code"),
    [
        pytest.param(Exit(1), "Error", 1, id="1"),
        pytest.param(Exit(139), "Error", 139, id="139"),
        pytest.param(Exit(3), "Error", 3, id="unlisted code"),
        pytest.param(OOM_KILLED, "OOMKilled", 137, id="OOMKilled"),
    ],
)
async def test_permanent_exit_of_a_worker_fails_the_job(
    outcome: Outcome, reason: str, code: int, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(
            never(),
            {"worker-1": [outcome], "scheduler-0": [KEEPS_RUNNING]},
            last_replica="worker-1",
        )
        status = await cluster.ended()
        assert status["state"] == "Failed"
        failure = status["failure"]
        assert (failure["replica"], failure["reason"]) == ("worker-1", reason)
        assert failure["exitCode"] == code
        assert str(code) in status["reason"]
        assert created(cluster, "worker-1") == 1
        await cluster.settled()
        assert "worker-1" in cluster.events()["MXJobFailed"]


async def test_permanent_exit_fails_the_job_even_if_the_kubelet_would_restart_it(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(
            mxjob(),
            {"worker-1": [Exit(1)], "scheduler-0": [KEEPS_RUNNING]},
            last_replica="worker-1",
        )
        status = await cluster.ended()
        assert (status["state"], status["failure"]["exitCode"]) == ("Failed", 1)


@pytest.mark.parametrize("code", [130, 137, 138, 143])
async def test_retryable_exit_costs_a_failure_and_a_new_pod(
    code: int, start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"worker-1": [Exit(code), DONE]})
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        restart = status["restarts"]["worker-1"]
        assert (restart["failures"], restart["consecutiveEnds"], restart["exitCode"]) == (
            1,
            1,
            code,
        )
        assert created(cluster, "worker-1") == 2


async def test_retryable_exit_restarted_by_the_kubelet_costs_no_pod(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(), {"worker-1": [Exit(143), Exit(143), DONE]})
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        assert "restarts" not in status
        assert created(cluster, "worker-1") == 1


@pytest.mark.parametrize("code", [1, 137, 143])
async def test_eviction_costs_no_failure(start_cluster: StartCluster, code: int) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"server-0": [Evicted(code), KEEPS_RUNNING]})
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        restart = status["restarts"]["server-0"]
        assert (restart["failures"], restart["consecutiveEnds"], restart["reason"]) == (
            0,
            1,
            "Evicted",
        )
        assert created(cluster, "server-0") == 2


async def test_deleted_pod_is_recreated_without_a_failure(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"worker-0": [Deleted(), Deleted(), DONE]})
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        assert "restarts" not in status
        assert created(cluster, "worker-0") == 3
        assert not cluster.history.violations


@pytest.mark.embedded_only("the pauses of production take minutes")
async def test_restarts_back_off_and_keep_the_failed_pod_until_then(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"worker-1": [Exit(143), Exit(143), Exit(143), DONE]})
        for number, pause_s in enumerate((10, 20, 40), 1):
            await cluster.until(partial(has_tried, cluster, number))
            lost = cluster.clock.monotonic()
            await cluster.until(partial(is_made, cluster, number + 1))
            assert cluster.clock.monotonic() - lost == pytest.approx(pause_s, abs=2)
        assert (await cluster.ended())["state"] == "Succeeded"


def has_tried(cluster: ClusterHarness, tries: int) -> bool:
    restarts = cluster.status().get("restarts") or {}
    return bool((restarts.get("worker-1") or {"consecutiveEnds": 0})["consecutiveEnds"] == tries)


def is_made(cluster: ClusterHarness, times: int) -> bool:
    return created(cluster, "worker-1") == times


async def test_completed_worker_is_not_recreated_when_its_pod_is_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"scheduler-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: completed(cluster) == "0-1")
        for name in [n for n in cluster.pods() if "worker" in n]:
            await cluster.user.delete(PODS, cluster.key(name))
        await cluster.settled()
        assert created(cluster, "worker-0") == created(cluster, "worker-1") == 1
        assert cluster.status()["phase"] == "Running"


async def test_completed_worker_is_not_recreated_however_fast_its_pod_is_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(never(), {"scheduler-0": [KEEPS_RUNNING], "worker-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: completed(cluster) == "1")
        # The last status write was a moment ago.
        await finish_and_delete_at_once(cluster, "worker-0")
        await cluster.settled()
        assert completed(cluster) == "0-1"
        assert created(cluster, "worker-0") == 1


@pytest.mark.embedded_only("it slows down the server")
@pytest.mark.parametrize(
    ("manifest", "slow"),
    [
        pytest.param(
            with_large_template(never(), "x" * (2 * MAX_STORED_BYTES)),
            Fault(verb="list", resource="mxjobs.kubeflow.org", delay_s=1, times=None),
            id="while its large spec is read",
        ),
        pytest.param(
            never(),
            Fault(verb="patch", resource="mxjobs.kubeflow.org", delay_s=1),
            id="while a status is written",
        ),
    ],
)
async def test_completed_worker_is_not_recreated_if_its_pod_is_gone_before_a_slow_reconcile(
    manifest: JSON, slow: Fault, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=[kind_of()]) as cluster:
        await run_all(cluster, manifest)
        cluster.server.faults.add(slow)
        await finish_and_delete_at_once(cluster, "worker-1")
        await cluster.advance(0.5)
        await finish_and_delete_at_once(cluster, "worker-0")
        await cluster.settled()
        assert completed(cluster) == "0-1"
        assert created(cluster, "worker-0") == created(cluster, "worker-1") == 1
        assert cluster.phase() == "Running"


async def fail_unseen(cluster: ClusterHarness, code: int, manifest: JSON) -> str:
    """Let a worker fail, and delete its pod, while the status of the job is written."""
    await run_all(cluster, manifest)
    name: str = pod_of(cluster, "worker-0")["metadata"]["name"]
    slow = Fault(verb="patch", resource="mxjobs.kubeflow.org", delay_s=1)
    cluster.server.faults.add(slow)
    await finish_and_delete_at_once(cluster, "worker-1")
    await cluster.advance(0.5)
    await finish_and_delete_at_once(cluster, "worker-0", code)
    return name


@pytest.mark.embedded_only("it slows down the server")
async def test_permanent_exit_counts_though_its_pod_is_gone_before_a_slow_reconcile(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of()]) as cluster:
        await fail_unseen(cluster, 1, never())
        status = await cluster.ended()
        assert status["state"] == "Failed"
        assert (status["failure"]["replica"], status["failure"]["exitCode"]) == ("worker-0", 1)
        assert status["replicaStatuses"]["Worker"] == {"failed": 1, "succeeded": 1}
        assert created(cluster, "worker-0") == 1


@pytest.mark.embedded_only("it slows down the server")
async def test_job_is_cleaned_up_though_another_pod_has_the_name_of_one_that_is_gone(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of()]) as cluster:
        manifest = never()
        manifest["spec"]["cleanupPodPolicy"] = "All"
        gone = await fail_unseen(cluster, 1, manifest)
        template = manifest["spec"]["replicaSpecs"][0]["template"]
        other = {"metadata": {"name": gone}, "spec": template["spec"]}
        await cluster.user.create(PODS, cluster.namespace, other)
        status = await cluster.ended()
        assert (status["failure"]["replica"], status["failure"]["exitCode"]) == ("worker-0", 1)
        await cluster.settled()
        assert [pod["metadata"]["name"] for pod in cluster.objects(PODS)] == [gone]


async def test_permanent_exit_counts_though_its_pod_is_gone_before_its_phase_is_known(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of()]) as cluster:
        await run_all(cluster, never())
        cluster.node.phase_lag_s = 60
        metadata: JSON = pod_of(cluster, "worker-0")["metadata"]
        async with asyncio.TaskGroup() as group:
            group.create_task(cluster.node.finish(metadata["uid"], 1))
            await cluster.until(lambda: not is_running(pod_of(cluster, "worker-0")))
            await cluster.advance(1)
            assert cluster.phase() == "Running"
            await cluster.user.delete(PODS, cluster.key(metadata["name"]), grace_period_s=0)
        status = await cluster.ended()
        assert (status["failure"]["replica"], status["failure"]["exitCode"]) == ("worker-0", 1)
        assert created(cluster, "worker-0") == 1


@pytest.mark.embedded_only("it slows down the server")
async def test_restart_is_counted_though_its_pod_is_gone_before_a_slow_reconcile(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=[kind_of()]) as cluster:
        await fail_unseen(cluster, 137, never())
        failed_at = cluster.clock.monotonic()
        await cluster.until(lambda: created(cluster, "worker-0") == 2)
        assert cluster.clock.monotonic() - failed_at > 5
        await cluster.settled()
        assert cluster.status()["restarts"]["worker-0"]["failures"] == 1
        assert created(cluster, "worker-0") == 2
        assert cluster.phase() == "Running"


@pytest.mark.embedded_only("it slows down the server")
async def test_worker_that_completed_without_a_controller_is_not_recreated(
    start_cluster: StartCluster,
) -> None:
    manifest = with_large_template(never(), "x" * (2 * MAX_STORED_BYTES))
    async with start_cluster(kinds=[kind_of()]) as cluster:
        await run_all(cluster, manifest)
        await cluster.kill_all()
        pod = pod_of(cluster, "worker-1")["metadata"]
        await cluster.node.finish(pod["uid"])
        slow = Fault(verb="list", resource="mxjobs.kubeflow.org", delay_s=1)
        cluster.server.faults.add(slow)
        cluster.start()
        # The first reconcile still reads the large spec.
        await cluster.advance(0.5)
        assert completed(cluster) == ""
        await cluster.user.delete(PODS, cluster.key(pod["name"]), grace_period_s=0)
        await cluster.settled()
        assert completed(cluster) == "1"
        assert created(cluster, "worker-1") == 1


def completed(cluster: ClusterHarness) -> str:
    replicas = (cluster.status().get("dlctl") or {}).get("replicaStatuses") or ()
    found = [r.get("completedIndexes", "") for r in replicas if r["mx_replica_type"] == "WORKER"]
    return "".join(found)


@pytest.mark.parametrize(
    ("policy", "pods", "services"),
    [
        pytest.param("All", [], [], id="All"),
        pytest.param(
            "Running", ["scheduler-0", "worker-0", "worker-1"], ["scheduler-0"], id="Running"
        ),
        pytest.param(
            "None",
            ["scheduler-0", "server-0", "worker-0", "worker-1"],
            ["scheduler-0"],
            id="None",
        ),
    ],
)
async def test_pods_are_deleted_by_the_clean_pod_policy(
    policy: str, pods: list[str], services: list[str], start_cluster: StartCluster
) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(cleanupPodPolicy=policy), {})
        await cluster.ended()
        await cluster.settled()
        assert replicas(cluster.pods()) == pods
        assert len(cluster.services()) == len(services)
