"""Conflicts that keep a job from getting on are logged; a single one is not."""

import logging

import pytest

from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

RESOURCE: Resource = kind_of("kubeflow.org/v1", "TFJob").resource
TEXT = "reconcile requeued repeatedly"

pytestmark = pytest.mark.embedded_only("it answers the writes of the controller")


def conflicting_writes(cluster: ClusterHarness, times: int) -> None:
    fault = Fault(
        verb="patch",
        subresource="status",
        name="linear",
        status=status.conflict(RESOURCE, "linear", "somebody else was faster"),
        user_agent="dlctl",
        times=times,
    )
    cluster.server.faults.add(fault)


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.message == TEXT]


@pytest.mark.parametrize(
    ("times", "is_logged"), [pytest.param(7, False, id="few"), pytest.param(9, True, id="many")]
)
async def test_conflicts_are_logged_if_they_repeat(
    times: int, is_logged: bool, start_cluster: StartCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with start_cluster() as cluster:
        conflicting_writes(cluster, times)
        cluster.start()
        await cluster.submit(training_job("TFJob", Chief=1), {"chief-0": [KEEPS_RUNNING]})
        await cluster.advance(60)
        await cluster.until(lambda: cluster.phase() == "Running")
        found = [str(vars(record)["error"]) for record in warnings(caplog)]
        assert len(found) == is_logged
        assert all("somebody else was faster" in error for error in found)
