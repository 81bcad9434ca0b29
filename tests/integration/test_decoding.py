"""The spec of a job is decoded once in each reconcile, whatever its dialect."""

from typing import Any

import attrs
import pytest

from dlctl.api.job import JobObject
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from tests.builders import bare_job, kind_of, mxjob, training_job
from tests.support.harness import StartCluster

JSON = dict[str, Any]


@attrs.frozen
class CountingKind(Kind):
    """A kind that records what it decodes."""

    decoded_versions: list[str] = attrs.field(factory=list)

    def decode(self, obj: JobObject) -> DecodedObject:
        self.decoded_versions.append(obj.metadata.resource_version)
        return super().decode(obj)


def counting(kind: Kind) -> CountingKind:
    return CountingKind(**{field.name: getattr(kind, field.name) for field in attrs.fields(Kind)})


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
