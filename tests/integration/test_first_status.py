"""The first status of a small job follows its children, once the CRD is known to preserve it."""

import datetime
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dlctl.api.meta import PODS
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import mxjob
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

RUNS_ON = {name: [KEEPS_RUNNING] for name in ("scheduler-0", "worker-0", "worker-1")}

pytestmark = pytest.mark.embedded_only("it holds up the writes of the controller")


@asynccontextmanager
async def after_first_job(start_cluster: StartCluster) -> AsyncIterator[ClusterHarness]:
    """Yield a cluster with a controller that has seen how the CRD preserves a status."""
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(name="first"), RUNS_ON)
        await cluster.until(lambda: cluster.status("first").get("phase") == "Running")
        await cluster.settled()
        yield cluster


def pods_of(cluster: ClusterHarness, job: str) -> list[str]:
    return [name for name in cluster.pods() if name.startswith(f"{job}-")]


async def test_first_job_of_a_kind_has_its_status_before_its_pods(
    start_cluster: StartCluster,
) -> None:
    """An outdated CRD drops statuses: nothing may run that would be forgotten."""
    slow = Fault(verb="patch", subresource="status", user_agent="dlctl", delay_s=20)
    async with start_cluster() as cluster:
        cluster.server.faults.add(slow)
        cluster.start()
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.advance(10)
        assert not cluster.pods()
        await cluster.until(lambda: cluster.status().get("phase") == "Running")


async def test_later_jobs_have_their_pods_first(start_cluster: StartCluster) -> None:
    slow = Fault(verb="patch", subresource="status", user_agent="dlctl", delay_s=20)
    async with after_first_job(start_cluster) as cluster:
        before = cluster.history.writes()
        cluster.server.faults.add(slow)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.until(lambda: len(pods_of(cluster, "linear")) == 4)
        assert not cluster.status()
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await cluster.settled()
        statuses = ("patch", "mxjobs/status.kubeflow.org")
        assert cluster.history.writes()[statuses] - before[statuses] <= 2


async def test_job_whose_pods_are_rejected_says_why_at_once(start_cluster: StartCluster) -> None:
    full = status.forbidden(PODS, "linear-worker", "exceeded quota: compute, pods=2")
    fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=full, times=None)
    async with after_first_job(start_cluster) as cluster:
        cluster.server.faults.add(fault)
        await cluster.submit(mxjob(), RUNS_ON)
        await cluster.advance(1)
        assert "exceeded quota" in cluster.condition("Waiting")


async def test_controller_that_is_killed_before_the_status_leaves_a_job_that_goes_on(
    start_cluster: StartCluster,
) -> None:
    slow = Fault(verb="patch", subresource="status", user_agent="dlctl", delay_s=20, times=None)
    async with after_first_job(start_cluster) as cluster:
        cluster.server.faults.add(slow)
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
