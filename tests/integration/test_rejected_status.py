"""A status that the API server refuses is an event of its job, which runs once it is accepted."""

import pytest

from dlctl.api.meta import Resource
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import FieldError, StatusError
from tests.builders import kind_of, training_job
from tests.support.harness import StartCluster
from tests.support.outcomes import KEEPS_RUNNING

RESOURCE: Resource = kind_of("kubeflow.org/v1", "TFJob").resource
REASON = "StatusRejected"

pytestmark = pytest.mark.embedded_only("it answers the writes of the controller")


def on_status(answer: StatusError) -> Fault:
    return Fault(
        verb="patch",
        subresource="status",
        name="linear",
        status=answer,
        user_agent="dlctl",
        times=3,
    )


@pytest.mark.parametrize(
    "answer",
    [
        status.invalid(RESOURCE, "linear", [FieldError("status", "failed rule: one condition")]),
        status.forbidden(RESOURCE, "linear", "failed rule: one condition"),
    ],
    ids=["by a rule of the CRD", "by a policy or role"],
)
async def test_refused_status_is_reported_and_tried_again(
    start_cluster: StartCluster, answer: StatusError
) -> None:
    async with start_cluster() as cluster:
        cluster.server.faults.add(on_status(answer))
        cluster.start()
        await cluster.submit(training_job("TFJob", Chief=1), {"chief-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: REASON in cluster.events())
        assert "failed rule: one condition" in cluster.events()[REASON]
        await cluster.until(lambda: cluster.phase() == "Running")


async def test_failing_server_is_no_refusal(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        cluster.server.faults.add(on_status(status.internal_error("no leader")))
        cluster.start()
        await cluster.submit(training_job("TFJob", Chief=1), {"chief-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.phase() == "Running")
        assert REASON not in cluster.events()
