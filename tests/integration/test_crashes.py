"""Jobs survive a controller that is killed at any moment."""

import asyncio

import pytest

from dlctl.local.apiserver.faults import Fault
from tests.builders import mxjob
from tests.support.harness import StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Evicted, Exit


@pytest.mark.embedded_only("in real time nothing is done in so few turns")
@pytest.mark.parametrize("turns", [20, 30, 40, 50, 60, 75, 90, 105, 120, 150, 180, 220])
async def test_job_succeeds_under_a_controller_killed_every_few_loop_iterations(
    turns: int, start_cluster: StartCluster
) -> None:
    manifest = mxjob(cleanupPodPolicy="None")
    for entry in manifest["spec"]["replicaSpecs"]:
        entry["template"]["spec"]["restartPolicy"] = "Never"
    async with start_cluster() as cluster:
        await cluster.submit(
            manifest, {"worker-0": [Evicted(), DONE], "worker-1": [Exit(143), DONE]}
        )
        for kills in range(12):
            controller = cluster.start()
            # Ever later, so that each await is the last one once.
            for _ in range(turns + kills):
                await asyncio.sleep(0)
            await controller.kill()
        cluster.start()
        status = await cluster.ended()
        assert status["state"] == "Succeeded"
        assert status["restarts"]["worker-0"]["failures"] == 0
        assert status["restarts"]["worker-1"]["failures"] == 1
        assert not cluster.history.violations
        made = {str(m.replica): n for m, n in cluster.history.created.items()}
        assert made == {"scheduler-0": 1, "server-0": 1, "worker-0": 2, "worker-1": 2}


@pytest.mark.embedded_only("it counts the seconds of production")
async def test_stopping_controller_finishes_started_work(start_cluster: StartCluster) -> None:
    slow = Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=5, times=None)
    async with start_cluster() as cluster:
        cluster.server.faults.add(slow)
        controller = cluster.start()
        # With more than a few, one of each template goes first.
        await cluster.submit(mxjob(workers=7), {"scheduler-0": [KEEPS_RUNNING]})
        await asyncio.sleep(2)
        assert cluster.history.writes()["create", "pods"]
        assert not cluster.pods()
        stopped = cluster.clock.monotonic()
        await controller.stop()

        assert len(cluster.pods()) == 9
        # The batches of one reconcile, and no further reconcile.
        assert 5 <= cluster.clock.monotonic() - stopped <= 16
        assert "SuccessfulCreate" in cluster.events()
        assert cluster.status()["phase"] == "Creating"


@pytest.mark.embedded_only("it counts the seconds of production")
async def test_stopping_controller_cancels_work_after_the_grace_period(
    start_cluster: StartCluster,
) -> None:
    stuck = Fault(verb="create", resource="pods", user_agent="dlctl", delay_s=50)
    async with start_cluster() as cluster:
        cluster.server.faults.add(stuck)
        controller = cluster.start()
        await cluster.submit(mxjob(), {})
        await asyncio.sleep(2)
        stopped = cluster.clock.monotonic()
        await controller.stop()
        assert cluster.clock.monotonic() - stopped == pytest.approx(30, abs=1)

        cluster.start()
        assert (await cluster.ended())["state"] == "Succeeded"
        assert not cluster.history.violations


async def test_stopping_controller_starts_no_more_work(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(mxjob(), {"scheduler-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await controller.stop()
        requests = sum(n for a, n in cluster.server.audit.items() if a.user_agent == "dlctl")
        await cluster.submit(mxjob(name="late"), {})
        await cluster.settled()
        after = sum(n for a, n in cluster.server.audit.items() if a.user_agent == "dlctl")
        assert after == requests
        assert not cluster.status("late")


@pytest.mark.embedded_only("other tests need the definitions that it does without")
async def test_controller_without_a_served_kind_stops_at_once(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(installed=()) as cluster:
        controller = cluster.start()
        await asyncio.sleep(20)
        stopped = cluster.clock.monotonic()
        await controller.stop()
        assert cluster.clock.monotonic() - stopped < 1
