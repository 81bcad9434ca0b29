"""Restarts of a whole elastic job after a retryable failure of its launcher."""

from typing import Final

import pytest

from dlctl.options import Options
from dlctl.reconcilers.kueue.finalizer import FINALIZER
from tests.builders import template
from tests.support.elastic_harness import ONE, ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"


async def test_retryable_failure_restarts_the_whole_job_with_the_same_number_of_workers() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=30)) as stage:
        await stage.running(2, restartPolicy="OnFailure", backoffLimit=1)
        await stage.scale_out(toAdd={"count": 2})
        await stage.scaler_result("out")
        before = stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 137)
        failed = stage.cluster.clock.monotonic()
        await stage.cluster.until(lambda: stage.cluster.pods() == [LAUNCHER])
        assert stage.cluster.clock.monotonic() - failed <= 2
        await stage.cluster.until(lambda: stage.runs(LAUNCHER))
        assert 28 < stage.cluster.clock.monotonic() - failed < 35
        assert stage.listed() == [0, 1, 2, 3]
        assert stage.uid("linear-worker-0") != before
        await stage.until_running()
        status = stage.cluster.status()
        assert status["restartCount"] == 1
        assert "completionTime" not in status
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"


async def test_whole_job_restarts_even_if_kueue_keeps_its_pods() -> None:
    kept = {"template": {**template("main"), "metadata": {"finalizers": [FINALIZER]}}}
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", worker=kept, launcher=kept)
        before = stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.status().get("restartCount") == 1)
        await stage.until_running()
        assert stage.uid("linear-worker-0") != before


async def test_whole_job_restarts_up_to_its_limit() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", backoffLimit=2)
        for count in (1, 2):
            await stage.end(LAUNCHER, 143)
            await restarted(stage, count)
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.cluster.until(lambda: stage.left() == [])
        assert stage.cluster.status()["restartCount"] == 2
        assert stage.cluster.status()["completionTime"]


async def test_job_that_fails_after_whole_job_restarts_has_never_been_restarting() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", backoffLimit=1)
        await stage.end(LAUNCHER, 143)
        await restarted(stage, 1)
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert stage.condition_statuses() == {
            "Created": "True",
            "WorkersCreated": "True",
            "WorkersReady": "True",
            "LauncherCreated": "True",
            "Running": "False",
            "Failed": "True",
        }


async def test_restarted_job_waits_for_all_its_workers_again() -> None:
    async with start_elastic_cluster(
        Options(restart_backoff_s=1, elastic_start_after_s=60)
    ) as stage:
        await stage.running(2, restartPolicy="OnFailure")
        await stage.cluster.advance(600)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.pods() == [])
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.cluster.advance(30)
        assert not stage.uid(LAUNCHER)
        await stage.become_ready("linear-worker-1")
        await stage.until_running()
        assert stage.listed() == [0, 1]


async def test_job_restart_ends_a_running_request() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(2, restartPolicy="OnFailure")
        stage.launchers.reachable_after_s = {"linear-worker-2": 20}
        await stage.scale_out(toAdd=ONE)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        await stage.end(LAUNCHER, 143)
        phase, _ = await stage.scaler_result("out")
        await stage.until_running()
        await stage.cluster.settled()
        assert stage.members() == ([0, 1, 2] if phase == "ScaleSucceeded" else [0, 1])
        assert stage.is_consistent()
        assert "currentScaler" not in stage.cluster.status()


@pytest.mark.parametrize("code", [1, 2, 127])
async def test_permanent_failure_fails_the_job_at_once(code: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, restartPolicy="OnFailure")
        await stage.end(LAUNCHER, code)
        failed = stage.cluster.clock.monotonic()
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert stage.cluster.clock.monotonic() - failed <= 1
        assert stage.cluster.status()["restartCount"] == 0


async def restarted(stage: ElasticHarness, count: int) -> None:
    await stage.cluster.until(lambda: stage.cluster.status()["restartCount"] == count)
    await stage.until_running()
