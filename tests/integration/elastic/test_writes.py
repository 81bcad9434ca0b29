"""The number of writes of a run for which et-operator wrote 34 job statuses."""

from typing import Final

import pytest

from dlctl.options import Options
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

MOST_JOB_STATUSES: Final = 12
MOST_SCALER_WRITES: Final = 4


async def test_restart_of_a_whole_job_deletes_workers_together_and_keeps_services() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=30)) as stage:
        await stage.running(20, restartPolicy="OnFailure")
        await stage.cluster.settled()
        before = stage.cluster.history.writes()
        await stage.end("linear-launcher", 137)
        await stage.cluster.until(lambda: stage.cluster.status().get("restartCount") == 1)
        await stage.until_running()
        await stage.cluster.settled()
        writes = stage.cluster.history.writes() - before
        assert {key: count for key, count in writes.items() if key[0].startswith("delete")} == {
            ("deletecollection", "pods"): 1,
            # The failed launcher stays until the restart, for its logs.
            ("delete", "pods"): 1,
        }
        assert (writes["create", "pods"], writes["create", "services"]) == (21, 0)


def written(stage: ElasticHarness, resource: str) -> int:
    group = "kai.alibabacloud.com"
    counts = stage.cluster.history.writes()
    return sum(n for (_, name), n in counts.items() if name == f"{resource}.{group}")


async def test_scaling_example_takes_few_writes() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker={"minReplicas": 1, "maxReplicas": 9})
        await stage.cluster.advance(10)
        await stage.scale_in(toDelete={"count": 1})
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.advance(10)
        await stage.scale_out(toAdd={"count": 2}, timeout=300)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.advance(10)
        assert stage.members() == [0, 1, 2]
        await stage.end("linear-launcher")
        await stage.cluster.until(lambda: stage.left() == [])
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Succeeded"
        assert 0 < written(stage, "trainingjobs/status") <= MOST_JOB_STATUSES
        assert written(stage, "trainingjobs") == 0
        for resource in ("scaleins", "scaleouts"):
            both = written(stage, resource) + written(stage, f"{resource}/status")
            assert both <= MOST_SCALER_WRITES
