"""Which pods are bound to the node."""

from typing import Any

import pytest

from dlctl.api.meta import PODS, ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.local.node.builders import scheduled
from tests.local.node.harness import NodeHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_pod_is_bound_once_its_last_gate_is_removed(harness: NodeHarness) -> None:
    await harness.start("gated", schedulingGates=[{"name": "example.com/gang"}])
    status = await harness.until("gated", scheduled)
    assert scheduled(status)["reason"] == "SchedulingGated"
    gates: dict[str, Any] = {"spec": {"schedulingGates": []}}
    await harness.client.patch(PODS, ObjectKey("default", "gated"), gates)
    status = await harness.finished("gated")
    assert (status["phase"], scheduled(status)["status"]) == ("Succeeded", "True")


async def test_pod_for_another_scheduler_waits_with_a_condition(harness: NodeHarness) -> None:
    await harness.start("other", schedulerName="volcano")
    status = await harness.until("other", scheduled)
    assert scheduled(status)["status"] == "False"
    assert scheduled(status)["reason"] == "Unschedulable"
    assert "volcano" in scheduled(status)["message"]
    await harness.delete("other")
    await harness.gone("other")


async def test_pod_is_bound_once_the_server_can_write_again(harness: NodeHarness) -> None:
    full = status.internal_error("objects.jsonl: No space left on device")
    harness.cluster.server.faults.add(
        Fault(verb="create", resource="pods", subresource="binding", status=full)
    )
    assert (await harness.run("late"))["phase"] == "Succeeded"


async def test_pod_does_not_wait_for_others_that_cannot_be_bound_yet(harness: NodeHarness) -> None:
    refused = status.internal_error("no binding")
    harness.cluster.server.faults.add(
        Fault(verb="create", resource="pods", subresource="binding", status=refused, times=20)
    )
    for number in range(20):
        await harness.start(f"refused-{number}")
    # In less time than 20 pauses take.
    assert (await harness.run("next"))["phase"] == "Succeeded"
