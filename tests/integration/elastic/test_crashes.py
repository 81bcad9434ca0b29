"""Scaling survives a controller that is killed between any two writes."""

import asyncio

import pytest

from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

# More than the revisions from the request to its end.
FAST = range(0, 40, 5)
SOAK = [n for n in range(40) if n not in FAST]


@pytest.mark.parametrize("writes", FAST)
async def test_request_survives_a_controller_killed_after_some_writes(writes: int) -> None:
    await _outlive(writes)


@pytest.mark.soak
@pytest.mark.parametrize("writes", SOAK)
async def test_request_survives_a_controller_killed_after_any_write(writes: int) -> None:
    await _outlive(writes)


@pytest.mark.parametrize("turns", [15, 30, 60, 90])
async def test_request_survives_a_controller_killed_every_few_loop_iterations(
    turns: int,
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        await stage.cluster.kill_all()
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await stage.cluster.advance(2)
        await stage.scale_out(toAdd={"count": 2})
        for kills in range(20):
            stage.cluster.start()
            # Ever later, so that each await is the last one once.
            for _ in range(turns + 3 * kills):
                await asyncio.sleep(0)
            await stage.cluster.kill_all()
        stage.cluster.start()
        await check(stage)


@pytest.mark.parametrize("writes", range(5))
async def test_rejected_request_becomes_a_condition_of_its_job_despite_a_killed_controller(
    writes: int,
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        revision = stage.cluster.server.storage.revision
        await stage.scale_in(toDelete={"count": 2})
        await _restart_after(stage, revision + writes)
        phase, message = await stage.scaler_result("in")
        assert phase == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.cluster.condition("ScaleFailed") == message
        assert stage.is_consistent()


async def test_rejection_that_its_request_cannot_get_is_reported_on_the_job_once() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        denied = StatusError(403, "Forbidden", "no")
        resource = SCALE_INS.group_resource
        fault = Fault(
            verb="patch", resource=resource, subresource="status", times=None, status=denied
        )
        stage.cluster.server.faults.add(fault)
        await stage.scale_in(toDelete={"count": 2})
        await stage.cluster.advance(20)
        assert stage.cluster.condition("ScaleFailed")
        revision = stage.cluster.server.storage.revision
        await stage.cluster.advance(60)
        assert stage.cluster.server.storage.revision == revision
        stage.cluster.server.faults.clear()
        assert (await stage.scaler_result("in"))[0] == "ScaleFailed"


async def _outlive(writes: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        stage.launchers.disconnects_s = 1
        stage.launchers.reachable_after_s = {"linear-worker-3": 2}
        revision = stage.cluster.server.storage.revision
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await stage.cluster.advance(1.5)
        await stage.scale_out(toAdd={"count": 2})
        await _restart_after(stage, revision + writes)
        await check(stage)


async def _restart_after(stage: ElasticHarness, revision: int) -> None:
    """Kill the controller at a revision of the storage, or when nothing changes; start another."""
    while stage.cluster.server.storage.revision < revision:
        stage.cluster.history.changed.clear()
        try:
            async with asyncio.timeout(20):
                await stage.cluster.history.changed.wait()
        except TimeoutError:
            break
    await stage.cluster.kill_all()
    stage.cluster.start()


async def check(stage: ElasticHarness) -> None:
    """Check that worker 1 is deleted, that two others exist, and that each was created once."""
    assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
    assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
    await stage.cluster.settled()
    assert stage.members() == [0, 2, 3, 4]
    assert stage.is_consistent()
    assert stage.scaler("in")["toDeletePods"] == ["linear-worker-1"]
    assert stage.scaler("out")["addPods"] == ["linear-worker-3", "linear-worker-4"]
    assert set(stage.cluster.history.created.values()) == {1}
