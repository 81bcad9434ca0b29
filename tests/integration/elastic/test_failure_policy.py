"""TrainingJobs with a failure policy: it decides about the launcher, and workers stay elastic."""

from typing import Any, Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.options import Options
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"
FAST: Final = Options(restart_backoff_s=1)


def policy(**fields: Any) -> JSON:
    return {"failurePolicy": fields}


def restarts(stage: ElasticHarness) -> int:
    count: int = stage.cluster.status().get("restartCount", 0)
    return count


async def test_failed_launcher_restarts_the_whole_job() -> None:
    async with start_elastic_cluster(FAST) as stage:
        await stage.running(2, runPolicy=policy(maxRestarts=1))
        before = stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 3)
        await stage.cluster.until(lambda: restarts(stage) == 1)
        await stage.until_running()
        assert stage.uid("linear-worker-0") != before
        await stage.end(LAUNCHER, 3)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert stage.cluster.status()["conditions"][-1]["reason"] == "ReachedMaxRestarts"
        assert restarts(stage) == 1


async def test_failed_worker_does_not_restart_the_job() -> None:
    async with start_elastic_cluster(FAST) as stage:
        await stage.running(
            3, worker={"restartPolicy": "OnFailure"}, runPolicy=policy(maxRestarts=1)
        )
        before = stage.uid("linear-worker-0")
        await stage.end("linear-worker-2", 1)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 3])
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Succeeded")
        assert restarts(stage) == 0
        assert before
