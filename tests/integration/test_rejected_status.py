"""A status that the API server refuses is an event of its job, which runs once it is accepted."""

from contextlib import suppress
from typing import Final

import attrs
import pytest

from dlctl.api.meta import PODS, Resource
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kubeflow.replica_map import ReplicaMap
from dlctl.kube.errors import NotFoundError
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import FieldError, StatusError
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

KIND: Final = kind_of("kubeflow.org/v1", "TFJob")
RESOURCE: Resource = KIND.resource
REASON = "StatusRejected"

pytestmark = pytest.mark.embedded_only("it answers the writes of the controller")


def on_status(answer: StatusError, times: int | None = 3) -> Fault:
    return Fault(
        verb="patch",
        subresource="status",
        name="linear",
        status=answer,
        user_agent="dlctl",
        times=times,
    )


async def start_job(cluster: ClusterHarness) -> None:
    cluster.start()
    await cluster.submit(training_job("TFJob", Chief=1), {"chief-0": [KEEPS_RUNNING]})


@pytest.mark.parametrize(
    "answer",
    [
        status.invalid(RESOURCE, "linear", [FieldError("status", "failed rule: one condition")]),
        status.forbidden(RESOURCE, "linear", "failed rule: one condition"),
        StatusError(404, "NotFound", "failed rule: one condition"),
    ],
    ids=["by a rule of the CRD", "by a policy", "by a CRD without the subresource"],
)
async def test_refused_status_is_reported_and_tried_again(
    start_cluster: StartCluster, answer: StatusError
) -> None:
    async with start_cluster() as cluster:
        cluster.server.faults.add(on_status(answer))
        await start_job(cluster)
        await cluster.until(lambda: REASON in cluster.events())
        assert "failed rule: one condition" in cluster.events()[REASON]
        await cluster.until(lambda: cluster.phase() == "Running")


@pytest.mark.parametrize(
    "answer",
    [
        status.internal_error("no leader"),
        status.internal_error('failed calling webhook "a": connection refused'),
        status.forbidden(RESOURCE, "linear", 'User "dlctl" cannot patch resource "tfjobs/status"'),
    ],
    ids=["server", "webhook", "role"],
)
async def test_what_is_not_about_the_job_is_no_event(
    start_cluster: StartCluster, answer: StatusError
) -> None:
    async with start_cluster() as cluster:
        cluster.server.faults.add(on_status(answer))
        await start_job(cluster)
        await cluster.until(lambda: cluster.phase() == "Running")
        assert REASON not in cluster.events()


class FaultyReplicaMap(ReplicaMap):
    """A dialect with a bug."""

    def managed_by_external_controller(self, obj: DecodedObject) -> bool:
        raise IndexError(obj.metadata.name)


async def test_refused_status_of_a_job_that_cannot_be_processed_is_reported(
    start_cluster: StartCluster,
) -> None:
    dialect = KIND.dialects[RESOURCE.version]
    assert isinstance(dialect, ReplicaMap)
    faulty = FaultyReplicaMap(dialect.kind)
    kind = attrs.evolve(KIND, dialects={RESOURCE.version: faulty})
    answer = status.invalid(RESOURCE, "linear", [FieldError("status", "failed rule: no content")])
    async with start_cluster() as cluster:
        cluster.server.faults.add(on_status(answer, None))
        cluster.start(kinds=[kind])
        await cluster.submit(training_job("TFJob", Chief=1), {})
        await cluster.until(lambda: REASON in cluster.events())
        assert "failed rule: no content" in cluster.events()[REASON]


async def test_refused_status_is_tried_with_back_off_whatever_its_pods_do(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        await start_job(cluster)
        await cluster.until(lambda: cluster.phase() == "Running")
        await cluster.settled()
        before = cluster.history.writes()
        answer = status.invalid(RESOURCE, "linear", [FieldError("status", "failed rule: no end")])
        cluster.server.faults.add(on_status(answer, None))
        await cluster.user.delete(PODS, cluster.key("linear-chief-0"))
        for number in range(60):
            await cluster.advance(1)
            labels = {"metadata": {"labels": {"number": str(number)}}}
            with suppress(NotFoundError):
                await cluster.user.patch(PODS, cluster.key("linear-chief-0"), labels)
        writes = cluster.history.writes() - before
        assert 2 <= writes["patch", f"{RESOURCE.plural}/status.{RESOURCE.group}"] <= 8
        assert writes["create", "events"] + writes["patch", "events"] <= 2
