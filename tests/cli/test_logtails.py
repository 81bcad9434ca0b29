"""Lines of replicas as they come over HTTP, from a server whose log is a list of chunks."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import attrs
import pytest

from dlctl.api.meta import PODS, ObjectKey
from dlctl.cli.logtails import KEPT_LINES, LogTails
from dlctl.cli.progress import JobProgress, ReplicaProgress, Run
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.server import serve
from dlctl.local.apiserver.subresources import LogRequest
from tests.builders import NOW

REPLICA = ReplicaProgress(
    "worker-0", "worker", pod="linear-0", started=NOW, run=Run("uid-1", "mxnet")
)
JOB = JobProgress("mxjob", ObjectKey("default", "linear"), replicas=(REPLICA,))
POD = {
    "metadata": {"name": "linear-0"},
    "spec": {"containers": [{"name": "mxnet", "image": "mxnet"}]},
}


async def heard_of(chunks: Sequence[bytes], *jobs: JobProgress) -> tuple[list[str], LogTails]:
    heard: list[str] = []

    async def log(_: LogRequest) -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
            # So that each chunk arrives by itself.
            await asyncio.sleep(0)

    async with serve(tls=False) as server:
        server.log_source = log
        config = ClusterConfig.with_token(server.url, server.token)
        async with Client(config) as client, asyncio.TaskGroup() as group:
            await client.create(PODS, "default", POD)
            tails = LogTails(client, group, lambda _, replica, line: heard.append(line))
            for job in jobs:
                tails.follow(job)
            await tails.finish(5)
    return heard, tails


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        pytest.param([b"one\ntwo\n"], ["one", "two"], id="whole lines"),
        pytest.param([b"on", b"e\ntw", b"o"], ["one", "two"], id="lines in pieces"),
        pytest.param([b" 9%\r50%\r99%\r\n"], ["99%"], id="the last state of a progress bar"),
        pytest.param([b"\x1b[31mred\x1b[0m\n"], [" [31mred [0m"], id="no control sequences"),
        pytest.param([b"\xff\n"], ["\N{REPLACEMENT CHARACTER}"], id="no text"),
        pytest.param([], [], id="nothing"),
    ],
)
async def test_lines_are_heard_in_order(chunks: list[bytes], lines: list[str]) -> None:
    heard, _ = await heard_of(chunks, JOB)
    assert heard == lines


async def test_last_lines_are_kept_for_the_replica() -> None:
    _, tails = await heard_of([b"%d\n" % n for n in range(200)], JOB)
    kept = list(tails.lines["mxjob default/linear", "worker-0"])
    assert (len(kept), kept[-1]) == (KEPT_LINES, "199")


async def test_each_start_is_followed_once() -> None:
    again = attrs.evolve(REPLICA, run=Run("uid-1", "mxnet", 1))
    heard, _ = await heard_of([b"hello\n"], JOB, JOB, attrs.evolve(JOB, replicas=(again,)))
    assert heard == ["hello", "hello"]


async def test_log_that_is_not_to_be_had_is_passed_over() -> None:
    gone = attrs.evolve(REPLICA, pod="gone")
    heard, _ = await heard_of([b"hello\n"], attrs.evolve(JOB, replicas=(gone,)))
    assert heard == []
