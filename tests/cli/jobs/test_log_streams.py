"""Which part of a log is shown of programs that run already, and of those that start later."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dlctl.api.meta import PODS
from dlctl.cli.jobs.cluster import TargetCluster
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.log_streams import LogStreams, LogWriter, PodLogOptions
from dlctl.local.apiserver.endpoints.log_requests import LogRequest
from dlctl.local.apiserver.server import ApiServer
from tests.builders import kind_of
from tests.integration.kubeflow import job_of
from tests.support.harness import start_cluster
from tests.support.outcomes import KEEPS_RUNNING, Exit

pytestmark = pytest.mark.looptime(noop_cycles=8)
KIND = kind_of("kubeflow.org/v1", "PyTorchJob")


async def two_lines(request: LogRequest) -> AsyncIterator[bytes]:
    """Respond with two lines, of which the last one is recent."""
    last_alone = request.tail_lines == 1 or request.since_s == 60
    yield b"last\n" if last_alone else b"first\nlast\n"
    if request.follow:
        await asyncio.sleep(1)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(PodLogOptions(tail=1), id="tail"),
        pytest.param(PodLogOptions(since_s=59.5), id="since"),
    ],
)
async def test_followed_log_starts_where_requested_and_that_of_a_restart_at_its_beginning(
    options: PodLogOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        assert isinstance(cluster.server, ApiServer)
        cluster.server.subresources.log_source = two_lines
        cluster.node.run_s = 10
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, policy="OnFailure")
        await cluster.submit(
            job, {"master-0": [KEEPS_RUNNING], "worker-0": [Exit(1), KEEPS_RUNNING]}
        )
        await cluster.until(lambda: cluster.phase() == "Running")
        target = TargetCluster(cluster.user, [KIND], cluster.namespace)
        streams = LogStreams(target, LogWriter(), options, ["worker-0"])
        async with asyncio.TaskGroup() as group:
            group.create_task(streams.follow(JobSnapshot.of(KIND, cluster.job())))
            await cluster.advance(40)
            master = cluster.server.storage.get(PODS, cluster.key("linear-master-0"))
            assert master is not None
            await cluster.node.finish(master.uid)
        assert capsys.readouterr().out == "last\nfirst\nlast\n"


async def a_line_and_no_end(request: LogRequest) -> AsyncIterator[bytes]:
    """Respond as for a program that has written a line, and runs on."""
    yield b"step 1\n"
    await asyncio.sleep(1000)


async def test_output_of_a_program_that_outlives_its_job_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        assert isinstance(cluster.server, ApiServer)
        cluster.server.subresources.log_source = a_line_and_no_end
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, policy="Never")
        await cluster.submit(job, {"master-0": [KEEPS_RUNNING], "worker-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.phase() == "Running")
        target = TargetCluster(cluster.user, [KIND], cluster.namespace)
        streams = LogStreams(target, LogWriter(), PodLogOptions(), ["worker-0"])
        async with asyncio.TaskGroup() as group:
            group.create_task(streams.follow(JobSnapshot.of(KIND, cluster.job())))
            await cluster.advance(2)
            master = cluster.server.storage.get(PODS, cluster.key("linear-master-0"))
            assert master is not None
            await cluster.node.finish(master.uid)
        assert capsys.readouterr().out == "step 1\n"
        assert streams.explained == {"worker-0"}
