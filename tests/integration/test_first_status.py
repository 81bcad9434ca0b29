"""The first status of a small job follows its children, once the CRD is known to preserve it."""

import asyncio
import datetime

import attrs
import pytest

from dlctl.api.meta import PODS
from dlctl.api.objects.jobs import MAX_STORED_BYTES
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import FieldError
from tests.builders import kind_of, mxjob
from tests.integration.mxjobs import metric_value, patch_spec
from tests.integration.stored_jobs import busy_reader, with_large_template
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING, Exit
from tests.support.running_controller import RunningController

SLOW_STATUS = Fault(verb="patch", subresource="status", user_agent="dlctl", delay_s=20)
RUNS_ON = {name: [KEEPS_RUNNING] for name in ("scheduler-0", "worker-0", "worker-1")}

pytestmark = pytest.mark.embedded_only("it holds up the writes of the controller")


async def run_first_job(cluster: ClusterHarness) -> RunningController:
    """Start a controller, and let it see how the CRD preserves the status of a first job."""
    controller = cluster.start()
    await cluster.submit(mxjob(name="first"), RUNS_ON)
    await cluster.until(lambda: cluster.status("first").get("phase") == "Running")
    await cluster.settled()
    return controller


def pods_of(cluster: ClusterHarness, job: str) -> list[str]:
    return [name for name in cluster.pods() if name.startswith(f"{job}-")]


async def test_first_job_of_a_kind_has_its_status_before_its_pods(
    start_cluster: StartCluster,
) -> None:
    """An outdated CRD drops statuses: nothing may run that would be forgotten."""
    async with start_cluster() as cluster:
        cluster.server.faults.add(SLOW_STATUS)
        cluster.start()
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.advance(10)
        assert not cluster.pods()
        await cluster.until(lambda: cluster.status().get("phase") == "Running")


async def test_later_jobs_have_their_pods_first(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        before = cluster.history.writes()
        cluster.server.faults.add(SLOW_STATUS)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.until(lambda: len(pods_of(cluster, "linear")) == 4)
        assert not cluster.status()
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await cluster.settled()
        statuses = ("patch", "mxjobs/status.kubeflow.org")
        assert cluster.history.writes()[statuses] - before[statuses] <= 2


async def test_first_status_that_says_running_counts_as_a_start(
    start_cluster: StartCluster,
) -> None:
    conflict = status.conflict(kind_of().resource, "linear", "it has changed")
    busy = Fault(verb="patch", subresource="status", user_agent="dlctl", status=conflict, times=8)
    async with start_cluster() as cluster:
        controller = await run_first_job(cluster)
        starts = "dlctl_job_start_duration_seconds_count"
        assert metric_value(controller, starts) == 1
        cluster.server.faults.add(busy)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await cluster.settled()
        assert metric_value(controller, starts) == 2


async def test_job_whose_pods_are_rejected_says_why_at_once(start_cluster: StartCluster) -> None:
    full = status.forbidden(PODS, "linear-worker", "exceeded quota: compute, pods=2")
    fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=full, times=None)
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        cluster.server.faults.add(fault)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.advance(1)
        assert "exceeded quota" in cluster.condition("Waiting")


async def test_job_with_an_invalid_template_fails_even_if_its_other_pods_run_by_then(
    start_cluster: StartCluster,
) -> None:
    """Its failure is decided when the server refuses a pod, and may be written later."""
    conflict = status.conflict(kind_of().resource, "linear", "it has changed")
    busy = Fault(verb="patch", subresource="status", user_agent="dlctl", status=conflict)
    job = mxjob()
    for entry in job["spec"]["replicaSpecs"]:
        if entry["mxReplicaType"] == "WORKER":
            entry["template"]["spec"]["volumes"] = [{"name": "Data", "emptyDir": {}}]
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        cluster.server.faults.add(busy)
        await cluster.submit(job, RUNS_ON)
        await cluster.until(lambda: bool(cluster.status().get("phase")))
        assert cluster.status()["phase"] == "Failed"
        assert 'Invalid value: "Data"' in cluster.condition("Failed")
        await cluster.until(lambda: not pods_of(cluster, "linear"))


async def test_job_that_is_suspended_before_its_status_can_be_resumed(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        cluster.server.faults.add(SLOW_STATUS)
        await cluster.submit(mxjob(runPolicy={"suspend": False}), RUNS_ON)
        await cluster.until(lambda: len(pods_of(cluster, "linear")) == 4)
        await patch_spec(cluster, {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: cluster.status().get("phase") == "Suspended")
        assert cluster.status()["startTime"]
        await cluster.until(lambda: not pods_of(cluster, "linear"))
        await patch_spec(cluster, {"runPolicy": {"suspend": False}})
        await cluster.until(lambda: cluster.status().get("phase") == "Running")


async def test_after_the_last_job_the_next_one_has_its_status_first_again(
    start_cluster: StartCluster,
) -> None:
    """Meanwhile the CRD may have become another operator's."""
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        await cluster.user.delete(kind_of().resource, cluster.key("first"))
        await cluster.until(lambda: not cluster.pods())
        cluster.server.faults.add(SLOW_STATUS)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.advance(10)
        assert not cluster.pods()


async def test_controller_that_is_killed_before_the_status_leaves_a_job_that_goes_on(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        cluster.server.faults.add(attrs.evolve(SLOW_STATUS, times=None))
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.until(lambda: len(pods_of(cluster, "linear")) == 4)
        await cluster.kill_all()
        assert not cluster.status()
        cluster.server.faults.clear()
        await cluster.advance(60)
        restarted = cluster.clock.now()
        cluster.start()
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        started = datetime.datetime.fromisoformat(cluster.status()["startTime"])
        assert restarted - started >= datetime.timedelta(seconds=60)
        assert {n for m, n in cluster.history.created.items()} == {1}
        assert not cluster.history.violations


async def test_job_that_ended_without_any_status_does_not_run_again(
    start_cluster: StartCluster,
) -> None:
    """Its status was always refused, and its pods have been collected."""
    refused = status.invalid(kind_of().resource, "linear", [FieldError("status", "no")])
    no_status = attrs.evolve(SLOW_STATUS, name="linear", delay_s=0, status=refused, times=None)
    async with start_cluster() as cluster:
        await run_first_job(cluster)
        cluster.server.faults.add(no_status)
        await cluster.submit(mxjob(), {name: [Exit(0)] for name in RUNS_ON})
        await cluster.until(lambda: len(pods_of(cluster, "linear")) == 4)
        await cluster.advance(60)
        for pod in pods_of(cluster, "linear"):
            await cluster.user.delete(PODS, cluster.key(pod))
        await cluster.kill_all()
        await cluster.advance(600)
        cluster.start()
        await cluster.submit(mxjob(name="second"), RUNS_ON)
        await cluster.advance(600)
        assert cluster.status("second").get("phase") == "Running"
        assert not pods_of(cluster, "linear")


async def test_edit_while_a_large_spec_is_read_is_not_missed(
    start_cluster: StartCluster,
) -> None:
    manifest = with_large_template(mxjob(runPolicy={"suspend": False}), "x" * MAX_STORED_BYTES)
    async with start_cluster() as cluster, asyncio.TaskGroup() as tasks:
        await run_first_job(cluster)
        with busy_reader(tasks, cluster.namespace):
            await cluster.submit(manifest, RUNS_ON)
            await cluster.advance(1)
            await patch_spec(cluster, {"runPolicy": {"suspend": True}})
            await cluster.advance(1)
        await cluster.until(lambda: cluster.status().get("phase") == "Suspended")
        assert len(cluster.history.created) == 4
