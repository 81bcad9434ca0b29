"""Verdicts from the ends of logs: right when they are first written, soon, and at no one's cost."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.local.apiserver import status
from dlctl.local.apiserver.endpoints.log_requests import LogRequest, LogSource
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.storage.stored_objects import StorageEvent
from dlctl.options import Options
from tests.builders import kind_of
from tests.integration.kubeflow import Outcomes, job_of
from tests.integration.rights import granted, used
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit

pytestmark = [
    pytest.mark.looptime(noop_cycles=8),
    pytest.mark.embedded_only("no program writes logs there"),
]
KIND = kind_of("kubeflow.org/v1", "PyTorchJob")
READS_ONE = Options(failure_log_tails=1)
EXCEPTION = "ValueError: the loss is not finite"
TRACEBACK = f'Traceback (most recent call last):\n  File "train.py", line 1\n{EXCEPTION}\n'
WORKER_FAILS: Outcomes = {"worker-0": [Exit(1)], "master-0": [KEEPS_RUNNING]}
BY_EXIT_CODE = "exit code 1"
LOG_RIGHT = ("", "pods/log", "get")


def pytorch_job(policy: str = "Never", workers: int = 1) -> JSON:
    return job_of("PyTorchJob", {"Master": 1, "Worker": workers}, policy=policy)


def writes(text: str) -> LogSource:
    async def log(_: LogRequest) -> AsyncIterator[bytes]:
        yield text.encode()

    return log


async def never_answers(_: LogRequest) -> AsyncIterator[bytes]:
    await asyncio.sleep(3600)
    yield b""


def serve_logs(cluster: ClusterHarness, source: LogSource) -> None:
    assert isinstance(cluster.server, ApiServer)
    cluster.server.subresources.log_source = source


def watch_messages(cluster: ClusterHarness) -> set[str]:
    """Return the messages of all verdicts that are ever written, as they come."""
    messages: set[str] = set()

    def observe(change: StorageEvent) -> None:
        if change.new is not None and change.new.key == cluster.key():
            attempts = cluster.status().get("dlctl", {}).get("attempts", ())
            messages.update(each["message"] for each in attempts if "message" in each)

    cluster.server.storage.observers.append(observe)
    return messages


async def test_first_verdict_names_the_exception_in_the_log() -> None:
    async with start_cluster(kinds=[KIND], options=READS_ONE) as cluster:
        serve_logs(cluster, writes(TRACEBACK))
        messages = watch_messages(cluster)
        cluster.start()
        await cluster.submit(pytorch_job(), WORKER_FAILS)
        await cluster.ended()
        assert messages == {EXCEPTION}
        assert EXCEPTION in cluster.condition("Failed")
        assert used(cluster.server) - granted() == {LOG_RIGHT}


async def test_log_is_not_read_without_the_setting() -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        serve_logs(cluster, writes(TRACEBACK))
        cluster.start()
        await cluster.submit(pytorch_job(), WORKER_FAILS)
        await cluster.ended()
        assert BY_EXIT_CODE in cluster.condition("Failed")
        assert LOG_RIGHT not in used(cluster.server)


async def test_log_is_not_read_where_the_pod_shows_the_cause() -> None:
    async with start_cluster(kinds=[KIND], options=READS_ONE) as cluster:
        serve_logs(cluster, writes(TRACEBACK))
        cluster.start()
        killed: Outcomes = {**WORKER_FAILS, "worker-0": [Exit(137, "OOMKilled")]}
        await cluster.submit(pytorch_job(), killed)
        await cluster.ended()
        assert cluster.status()["dlctl"]["attempts"][0]["cause"] == "OutOfMemory"
        assert LOG_RIGHT not in used(cluster.server)


@pytest.mark.parametrize("code", [403, 404, 500])
async def test_refused_log_counts_as_none(code: int) -> None:
    async with start_cluster(kinds=[KIND], options=READS_ONE) as cluster:
        refusal = status.StatusError(code, "", "no logs here")
        cluster.server.faults.add(Fault(subresource="log", status=refusal, times=None))
        cluster.start()
        await cluster.submit(pytorch_job(), WORKER_FAILS)
        await cluster.ended()
        assert BY_EXIT_CODE in cluster.condition("Failed")


async def test_node_that_does_not_answer_delays_the_verdict_by_seconds() -> None:
    async with start_cluster(kinds=[KIND], options=READS_ONE) as cluster:
        serve_logs(cluster, never_answers)
        cluster.start()
        await cluster.submit(pytorch_job(), WORKER_FAILS)

        def has_failed() -> bool:
            return any(p["status"].get("phase") == "Failed" for p in cluster.objects(PODS))

        await cluster.until(has_failed)
        failed = cluster.clock.monotonic()
        await cluster.until(lambda: cluster.condition("Failed"))
        assert 4 < cluster.clock.monotonic() - failed < 7
        assert BY_EXIT_CODE in cluster.condition("Failed")


async def test_reads_of_one_job_hold_up_no_other() -> None:
    async with start_cluster(kinds=[KIND], options=Options(failure_log_tails=32)) as cluster:
        serve_logs(cluster, never_answers)
        cluster.start()
        many = {f"worker-{index}": [Exit(1)] for index in range(32)}
        await cluster.submit(
            pytorch_job(workers=32), {**many, "master-0": [KEEPS_RUNNING]}, last_replica="worker-0"
        )
        await cluster.until(lambda: LOG_RIGHT in used(cluster.server))
        started = cluster.clock.monotonic()
        other = pytorch_job()
        other["metadata"]["name"] = "other"
        await cluster.submit(other, {"master-0": [DONE], "worker-0": [DONE]})
        await cluster.until(lambda: cluster.phase("other") in ("Running", "CleanUp", "Done"))
        assert cluster.clock.monotonic() - started < 4
        await cluster.ended("other")
        await cluster.ended()


async def test_log_of_a_run_that_is_repeated_in_place_is_read_once() -> None:
    read: list[str] = []

    async def log(request: LogRequest) -> AsyncIterator[bytes]:
        read.append(request.pod)
        # Meanwhile the container runs again.
        await asyncio.sleep(3)
        yield TRACEBACK.encode()

    async with start_cluster(kinds=[KIND], options=READS_ONE) as cluster:
        serve_logs(cluster, log)
        messages = watch_messages(cluster)
        cluster.start()
        outcomes: Outcomes = {**WORKER_FAILS, "worker-0": [Exit(1), KEEPS_RUNNING]}
        await cluster.submit(pytorch_job("OnFailure"), outcomes)
        await cluster.until(lambda: messages)
        await cluster.settled()
        assert messages == {EXCEPTION}
        assert read == ["linear-worker-0"]


async def test_earliest_failures_of_each_attempt_are_read() -> None:
    read: list[str] = []

    async def log(request: LogRequest) -> AsyncIterator[bytes]:
        read.append(request.pod)
        yield TRACEBACK.encode()

    async with start_cluster(kinds=[KIND], options=Options(failure_log_tails=2)) as cluster:
        serve_logs(cluster, log)
        cluster.start()
        job = pytorch_job("ExitCode", workers=3)
        job["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 1}}
        fails = {f"worker-{index}": [Exit(1), Exit(1)] for index in range(3)}
        await cluster.submit(
            job, {**fails, "master-0": [KEEPS_RUNNING] * 2}, last_replica="worker-2"
        )
        await cluster.ended()
        first, second = cluster.status()["dlctl"]["attempts"]
        assert first["message"] == second["message"] == EXCEPTION
        assert len(read) <= 4
