"""Writes that come too late: they must not land on another object under the same name."""

from typing import Any

import pytest

from dlctl.api.job import JobObject
from dlctl.clock import SystemClock
from dlctl.controller.event_recorder import EventRecorder
from dlctl.controller.expectations import Expectations
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError
from dlctl.metrics import Metrics
from dlctl.reconcilers.executor import Executor
from tests.builders import kind_of, mxjob
from tests.support.harness import ClusterHarness, StartCluster

KIND = kind_of()


def executor(client: Client) -> Executor:
    clock = SystemClock()
    recorder = EventRecorder(client, clock=clock, metrics=Metrics())
    return Executor(client, Expectations(clock), recorder)


async def submitted(cluster: ClusterHarness) -> JobObject:
    await cluster.submit(mxjob(), {})
    return await cluster.user.get(KIND.resource, cluster.key(), JobObject)


async def test_status_of_a_job_that_is_gone_does_not_land_on_its_successor(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        old = await submitted(cluster)
        await cluster.user.delete(KIND.resource, cluster.key())
        await cluster.until(lambda: not cluster.objects(KIND.resource))
        await submitted(cluster)
        with pytest.raises(ConflictError):
            await executor(cluster.user).patch_status(old, KIND.resource, {}, {"phase": "Done"})
        assert "status" not in await cluster.user.get(KIND.resource, cluster.key(), dict[str, Any])


async def test_status_computed_before_somebody_changed_the_job_is_computed_anew(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        old = await submitted(cluster)
        await cluster.user.patch(
            KIND.resource, cluster.key(), {"metadata": {"labels": {"team": "vision"}}}
        )
        with pytest.raises(ConflictError):
            await executor(cluster.user).patch_status(old, KIND.resource, {}, {"phase": "Done"})


async def test_two_writes_in_a_row_build_on_each_other(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        job = await submitted(cluster)
        work = executor(cluster.user)
        job = await work.patch_status(job, KIND.resource, {}, {"phase": "Creating"})
        job = await work.patch_spec(job, KIND.resource, {"RuntimeId": "abcd"})
        found = await cluster.user.get(KIND.resource, cluster.key(), dict[str, Any])
        assert (found["status"]["phase"], found["spec"]["RuntimeId"]) == ("Creating", "abcd")


async def test_job_that_was_changed_since_it_was_read_is_not_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await submitted(cluster)
        old = await cluster.user.get(KIND.resource, cluster.key(), JobObject)
        longer = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 3600}}}
        await cluster.user.patch(KIND.resource, cluster.key(), longer)
        with pytest.raises(ConflictError):
            await executor(cluster.user).delete_job(KIND.read(old), old)
        assert cluster.job()
