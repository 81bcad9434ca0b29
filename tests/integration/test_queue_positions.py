"""Positions in Kueue's queues, in the condition of a job that waits for quota."""

from typing import Any, Final

import attrs
import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, PODS, ObjectKey
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.workloads import LOCAL_QUEUES
from dlctl.cli.jobs.explanation import explain
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.kube.client import Client
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from dlctl.reconcilers.kueue.queue_positions import INTERVAL_S
from dlctl.reconcilers.status.status_debounce import MAX_INTERVAL_S
from tests.builders import kind_of, training_job
from tests.integration.rights import granted, used
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.visibility import summary
from tests.support.workloads import create_workload, serve_workloads, write_workload

pytestmark = [
    pytest.mark.looptime(noop_cycles=8),
    pytest.mark.embedded_only("no server of Kueue runs there"),
]
KIND: Final = kind_of("kubeflow.org/v1", "PyTorchJob")
WITH_POSITIONS: Final = Options(kueue_positions=True)
RIGHT: Final = (LOCAL_QUEUES.group, "localqueues/pendingworkloads", "get")
NO_QUOTA: Final = {"type": "QuotaReserved", "status": "False", "message": "no quota"}
ADMITTED: Final = {"type": "Admitted", "status": "True"}
STATUS: Final = ("patch", "pytorchjobs/status.kubeflow.org")


class Positions(StatusError):  # noqa: N818 - only an error replaces a response there.
    """The response of the visibility API, in place of the embedded server's own."""

    def __init__(self, positions: dict[str, int]) -> None:
        super().__init__(200, "", "")
        self.positions = positions

    def body(self) -> JSON:
        return summary("default", self.positions)


async def serve_local_queues(user: Client) -> None:
    """Let the server have the resource that another server serves in production."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": LOCAL_QUEUES.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    metadata = {
        "name": LOCAL_QUEUES.group_resource,
        "annotations": {"api-approved.kubernetes.io": "https://example.com/1"},
    }
    spec = {
        "group": LOCAL_QUEUES.group,
        "scope": "Namespaced",
        "names": {"plural": "localqueues", "singular": "localqueue", "kind": "LocalQueue"},
        "versions": [version],
    }
    await user.create(CRDS, "", {"metadata": metadata, "spec": spec})


def answer(cluster: ClusterHarness, response: StatusError | None = None, **fault: Any) -> None:
    """Let the visibility API respond in this way from now on."""
    cluster.server.faults.clear()
    always = Fault(resource=LOCAL_QUEUES.group_resource, times=None, status=response)
    cluster.server.faults.add(attrs.evolve(always, **fault))


async def queued_job(cluster: ClusterHarness) -> ObjectKey:
    """Start with a job that waits for quota; return the key of its Workload."""
    await serve_workloads(cluster.user)
    await serve_local_queues(cluster.user)
    cluster.start()
    job = training_job("PyTorchJob", Master=1, Worker=1)
    job["spec"]["runPolicy"] = {"suspend": True}
    await cluster.submit(job)
    key = await create_workload(cluster, cluster.job(), [NO_QUOTA])
    await cluster.until(lambda: "from queue team-a" in cluster.condition("Waiting"))
    return key


def at(position: int | str) -> str:
    return f"from queue team-a (position {position} of the cluster queue): no quota"


async def test_job_says_at_which_position_it_waits() -> None:
    async with start_cluster(kinds=[KIND], options=WITH_POSITIONS) as cluster:
        key = await queued_job(cluster)
        answer(cluster, Positions({key.name: 2}))
        await cluster.until(lambda: at(3) in cluster.condition("Waiting"))
        pods = [msgspec.convert(pod, Pod) for pod in cluster.objects(PODS)]
        why = explain(JobSnapshot.of(KIND, cluster.job()), pods, (), cluster.clock.now())
        assert f"  {cluster.condition('Waiting')}" in list(why)
        assert used(cluster.server) - granted() == {RIGHT}

        await write_workload(cluster, key, {"conditions": [ADMITTED]})
        await cluster.until(lambda: "is suspended" in cluster.condition("Waiting"))


async def test_positions_are_not_read_without_the_setting() -> None:
    async with start_cluster(kinds=[KIND]) as cluster:
        key = await queued_job(cluster)
        answer(cluster, Positions({key.name: 2}))
        await cluster.advance(2 * INTERVAL_S)
        assert "position" not in cluster.condition("Waiting")
        assert RIGHT not in used(cluster.server)


async def test_positions_of_one_band_are_one_write() -> None:
    async with start_cluster(kinds=[KIND], options=WITH_POSITIONS) as cluster:
        key = await queued_job(cluster)
        answer(cluster, Positions({key.name: 19}))
        await cluster.until(lambda: at("11 to 20") in cluster.condition("Waiting"))
        before = cluster.history.writes()[STATUS]
        for position in (18, 14, 10):
            answer(cluster, Positions({key.name: position}))
            await cluster.advance(INTERVAL_S + MAX_INTERVAL_S)
        assert cluster.history.writes()[STATUS] == before


async def test_each_position_is_one_write_and_the_same_one_none() -> None:
    async with start_cluster(kinds=[KIND], options=WITH_POSITIONS) as cluster:
        key = await queued_job(cluster)
        answer(cluster, Positions({key.name: 9}))
        await cluster.until(lambda: at(10) in cluster.condition("Waiting"))
        before = cluster.history.writes()[STATUS]
        await cluster.advance(5 * INTERVAL_S)
        assert cluster.history.writes()[STATUS] == before

        for position in (8, 7, 6):
            answer(cluster, Positions({key.name: position}))
            await cluster.advance(INTERVAL_S + MAX_INTERVAL_S)
        assert cluster.history.writes()[STATUS] == before + 3
        assert at(7) in cluster.condition("Waiting")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": StatusError(403, "Forbidden", "no")}, id="denied"),
        pytest.param({"status": StatusError(503, "", "no")}, id="unavailable"),
        pytest.param({"delay_s": 3600.0}, id="hanging"),
        pytest.param({"reset": "before"}, id="reset"),
    ],
)
async def test_sentence_has_no_position_after_failures_in_a_row(fault: JSON) -> None:
    async with start_cluster(kinds=[KIND], options=WITH_POSITIONS) as cluster:
        key = await queued_job(cluster)
        answer(cluster, Positions({key.name: 2}))
        await cluster.until(lambda: at(3) in cluster.condition("Waiting"))
        answer(cluster, **fault)
        await cluster.until(lambda: "from queue team-a: no quota" in cluster.condition("Waiting"))
        answer(cluster, Positions({key.name: 1}))
        await cluster.until(lambda: at(2) in cluster.condition("Waiting"))


async def test_controller_stops_while_the_api_hangs() -> None:
    async with start_cluster(kinds=[KIND], options=WITH_POSITIONS) as cluster:
        await serve_workloads(cluster.user)
        await serve_local_queues(cluster.user)
        answer(cluster, delay_s=3600.0)
        running = cluster.start()
        job = training_job("PyTorchJob", Master=1)
        job["spec"]["runPolicy"] = {"suspend": True}
        await cluster.submit(job)
        await create_workload(cluster, cluster.job(), [NO_QUOTA])
        await cluster.until(lambda: RIGHT in used(cluster.server))
        stopped = cluster.clock.monotonic()
        await running.stop()
        assert cluster.clock.monotonic() - stopped < 1
