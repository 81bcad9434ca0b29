"""How long a controller takes to stop, whatever the server does."""

import asyncio

import pytest

from dlctl.api.meta import PODS, UID, ObjectMeta
from dlctl.local.apiserver.faults import Fault
from dlctl.options import Options
from tests.builders import kind_of
from tests.support.harness import StartCluster


@pytest.mark.embedded_only("the faults of a real server's proxy hold up its other clients")
async def test_unaccepted_events_are_dropped_after_the_grace_period(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(
        kinds=[kind_of()], options=Options(graceful_shutdown_timeout_s=20.0)
    ) as cluster:
        running = cluster.start()
        await cluster.settled()
        hanging = Fault(verb="create", resource="events", delay_s=1e6, times=None)
        cluster.server.faults.add(hanging)
        for number in range(1_000):
            job = ObjectMeta(name=f"job-{number}", namespace="default", uid=UID(str(number)))
            running.manager._parts.recorder.record(PODS, job, "Normal", "Noted", "said")
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await running.stop()
        assert loop.time() - began <= 21
        dropped = running.manager.metrics.registry.get_sample_value
        assert dropped("dlctl_events_dropped_total", {"reason": "closing"}) == 999
