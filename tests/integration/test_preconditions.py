"""Late writes must not change another object of the same name."""

from typing import Any

import pytest

from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase, JobStatus
from dlctl.clock import SystemClock
from dlctl.controller.expectations import Expectations
from dlctl.controller.object_writer import ObjectWriter
from dlctl.dialects import lenient_reader
from dlctl.dialects.dialect import DecodedObject
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError
from dlctl.metrics import Metrics
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.crd_check import CRDCheck
from dlctl.reconcilers.job.status_write import StatusWrite
from dlctl.reconcilers.job.writer import JobWriter
from tests.builders import kind_of, mxjob
from tests.support.harness import ClusterHarness, StartCluster

KIND = kind_of()


class Writer:
    """Writes jobs like the controller."""

    def __init__(self, client: Client) -> None:
        clock = SystemClock()
        crd = CRDCheck(KIND.resource, Metrics(), clock)
        self.jobs = JobWriter(KIND, ObjectWriter(client, Expectations(clock)), crd)

    async def patch_phase(self, obj: DecodedObject, phase: JobPhase) -> DecodedObject:
        job = lenient_reader.job_of_status(obj, JobStatus())
        write = StatusWrite(job, JobStatus(phase=phase))
        updated = await self.jobs.patch_status(obj, write, JobCache(obj.metadata.uid))
        assert updated is not None
        return updated


async def submitted(cluster: ClusterHarness) -> DecodedObject:
    await cluster.submit(mxjob(), {})
    return KIND.decode(await cluster.user.get(KIND.resource, cluster.key(), JobObject))


async def test_status_of_a_deleted_job_is_not_written_to_its_successor(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        old = await submitted(cluster)
        await cluster.user.delete(KIND.resource, cluster.key())
        await cluster.until(lambda: not cluster.objects(KIND.resource))
        await submitted(cluster)
        with pytest.raises(ConflictError):
            await Writer(cluster.user).patch_phase(old, JobPhase.DONE)
        assert "status" not in await cluster.user.get(KIND.resource, cluster.key(), dict[str, Any])


async def test_status_computed_from_a_stale_job_is_computed_again(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        old = await submitted(cluster)
        await cluster.user.patch(
            KIND.resource, cluster.key(), {"metadata": {"labels": {"team": "vision"}}}
        )
        with pytest.raises(ConflictError):
            await Writer(cluster.user).patch_phase(old, JobPhase.DONE)


async def test_consecutive_writes_use_the_new_version(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        job = await submitted(cluster)
        writer = Writer(cluster.user)
        job = await writer.patch_phase(job, JobPhase.CREATING)
        await writer.jobs.patch_spec(job, {"RuntimeId": "abcd"})
        found = await cluster.user.get(KIND.resource, cluster.key(), dict[str, Any])
        assert (found["status"]["phase"], found["spec"]["RuntimeId"]) == ("Creating", "abcd")


async def test_job_changed_since_it_was_read_is_not_deleted(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        old = await submitted(cluster)
        longer = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 3600}}}
        await cluster.user.patch(KIND.resource, cluster.key(), longer)
        with pytest.raises(ConflictError):
            await Writer(cluster.user).jobs.delete(KIND.read(old), old)
        assert cluster.job()
