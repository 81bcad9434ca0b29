"""Run policies: suspension, active deadline, backoff limit and TTL."""

import pytest

from dlctl.api.meta import EVENTS, PODS
from tests.builders import kind_of, mxjob
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit, Outcome

JOBS = kind_of().resource
FOREVER: dict[str, list[Outcome]] = {
    "scheduler-0": [KEEPS_RUNNING],
    "server-0": [KEEPS_RUNNING],
    "worker-0": [KEEPS_RUNNING],
}


async def suspend(cluster: ClusterHarness, value: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": value}}}
    await cluster.user.patch(JOBS, cluster.key(), patch)


async def test_job_is_suspended_and_resumed(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(workers=1), FOREVER)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")

        await suspend(cluster, True)
        await cluster.until(lambda: not cluster.pods() and not cluster.services())
        await cluster.until(lambda: cluster.status()["phase"] == "Suspended")

        await suspend(cluster, False)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        assert len(cluster.pods()) == 3
        await cluster.until(lambda: {"MXJobSuspended", "MXJobResumed"} <= set(cluster.events()))


async def test_job_fails_at_its_active_deadline(start_cluster: StartCluster) -> None:
    job = mxjob(workers=1, runPolicy={"activeDeadlineSeconds": 2})
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, FOREVER)
        ended = await cluster.ended()
        assert (ended["state"], ended["failure"]["reason"]) == ("Failed", "DeadlineExceeded")
        assert "replica" not in ended["failure"]
        await cluster.until(lambda: not cluster.pods())


async def test_job_fails_at_its_backoff_limit(
    start_cluster: StartCluster,
) -> None:
    job = mxjob(workers=1, runPolicy={"backoffLimit": 2})
    outcomes: dict[str, list[Outcome]] = {**FOREVER, "worker-0": [Exit(137), Exit(137), DONE]}
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, outcomes)
        ended = await cluster.ended()
        assert (ended["state"], ended["failure"]["reason"]) == ("Failed", "BackoffLimitExceeded")


async def test_job_is_deleted_when_its_time_after_the_end_is_over(
    start_cluster: StartCluster,
) -> None:
    job = mxjob(workers=1, cleanupPodPolicy="None", runPolicy={"ttlSecondsAfterFinished": 2})
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job, {})
        assert (await cluster.ended())["state"] == "Succeeded"
        await cluster.until(lambda: not cluster.objects(JOBS) and not cluster.objects(PODS))
        reasons = {event["reason"] for event in cluster.objects(EVENTS)}
        assert "SuccessfulDeleteJob" in reasons


@pytest.mark.embedded_only("a controller that was away so long takes compacted time")
async def test_ttl_runs_while_no_controller_does(start_cluster: StartCluster) -> None:
    job = mxjob(workers=1, runPolicy={"ttlSecondsAfterFinished": 3600})
    async with start_cluster() as cluster:
        first = cluster.start()
        await cluster.submit(job, {})
        await cluster.ended()
        await first.kill()
        await cluster.advance(3600)
        cluster.start()
        await cluster.until(lambda: not cluster.objects(JOBS))
