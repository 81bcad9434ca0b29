"""The spec of a job is decoded once in each reconcile, whatever its dialect."""

import pytest

from dlctl.api.json_types import JSON
from tests.builders import bare_job, kind_of, mxjob, training_job
from tests.support.counting_kind import counting
from tests.support.harness import StartCluster


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(mxjob(), id="list form beside the map form"),
        pytest.param(training_job("TFJob", Chief=1, Worker=1), id="map form"),
        pytest.param(bare_job(), id="bare list"),
    ],
)
async def test_each_reconcile_decodes_the_spec_once(
    start_cluster: StartCluster, wire: JSON
) -> None:
    kind = counting(kind_of(wire["apiVersion"], wire["kind"]))
    async with start_cluster() as cluster:
        running = cluster.start(kinds=[kind])
        await cluster.submit(wire, {})
        await cluster.ended()
        # A reconcile is counted when it ends.
        await cluster.settled()
        reconciles = sum(
            sample.value
            for family in running.manager.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "controller_runtime_reconcile_total"
        )
    assert 0 < len(kind.decoded_versions) <= reconciles
