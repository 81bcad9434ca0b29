"""The end of elastic jobs: success, failure, limits, and what is cleaned up."""

from typing import Final

import pytest

from dlctl.api.meta import EVENTS, PODS
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.elastic_harness import JOBS, ONE, start_elastic_cluster
from tests.support.outcomes import Exit

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"


async def test_job_succeeds_with_its_launcher() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.left() == [])
        await stage.cluster.settled()
        status = stage.cluster.status()
        assert status["phase"] == "Succeeded"
        assert status["completionTime"]
        assert status["replicaStatuses"]["Launcher"] == {"succeeded": 1}
        worker = status["replicaStatuses"]["Worker"]
        assert (worker["active"], "succeeded" in worker) == (2, False)
        assert stage.cluster.condition("Succeeded") == "job(default/linear) successfully completed."
        assert not stage.cluster.condition("Running")
        assert stage.uid(LAUNCHER)


@pytest.mark.parametrize(("code", "end"), [(0, "Succeeded"), (1, "Failed")])
async def test_launcher_that_ends_at_once_has_been_created(code: int, end: str) -> None:
    async with start_elastic_cluster() as stage:
        stage.cluster.node.run_s = stage.cluster.node.phase_lag_s = 0
        job = elastic_job(launcherAttachMode="kubexec")
        await stage.cluster.submit(job, {"launcher-0": [Exit(code)]})
        await stage.cluster.until(lambda: stage.cluster.phase() == end)
        conditions = stage.cluster.status()["conditions"]
        types = [condition["type"] for condition in conditions]
        assert types == ["Created", "WorkersCreated", "WorkersReady", "LauncherCreated", end]
        # Like et-operator, which leaves out an empty reason.
        assert [c["type"] for c in conditions if "reason" in c] == ["Created", end]


@pytest.mark.parametrize(
    ("pod_reason", "reason"),
    [
        ("Evicted", "TrainingJobEvicted"),
        ("DeadlineExceeded", "DeadlineExceeded"),
        ("UnexpectedAdmissionError", "UnexpectedAdmissionError"),
    ],
)
async def test_job_whose_launchers_pod_fails_has_its_reason_and_a_completion_time(
    pod_reason: str, reason: str
) -> None:
    # The launchers that the workers serve here know nothing of a pod that fails by its status.
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(1)
        failed = {"phase": "Failed", "reason": pod_reason, "message": "by the node"}
        key = stage.cluster.key(LAUNCHER)
        await stage.cluster.user.patch(PODS, key, {"status": failed}, subresource="status")
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        status = stage.cluster.status()
        assert status["completionTime"]
        assert status["conditions"][-1]["reason"] == reason
        # As in et-operator, the event has the pod's own reason also where the condition has not.
        await stage.cluster.until(lambda: bool(stage.event_messages(pod_reason)))


async def test_job_whose_launcher_exits_with_an_error_has_no_reason_of_its_container() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        await stage.end(LAUNCHER, 1)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert stage.cluster.status()["conditions"][-1]["reason"] == "TrainingJobFailed"


@pytest.mark.parametrize(
    ("policy", "left"),
    [("All", []), ("Running", ["linear-worker-1"]), ("None", ["linear-worker-0"])],
)
async def test_workers_are_cleaned_up_by_the_clean_pod_policy(policy: str, left: list[str]) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, cleanPodPolicy=policy)
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Succeeded")
        await stage.cluster.settled()
        assert set(left) <= set(stage.left())
        assert stage.workers() == ([0] if policy == "None" else [])
        assert bool(stage.uid("linear-worker-1")) is (policy != "All")
        assert stage.uid(LAUNCHER)


async def test_job_is_deleted_when_its_time_after_the_end_is_over() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1, ttlSecondsAfterFinished=60)
        await stage.end(LAUNCHER)
        await stage.cluster.advance(50)
        assert stage.cluster.objects(JOBS)
        await stage.cluster.until(lambda: not stage.cluster.objects(JOBS))


async def test_job_fails_at_its_deadline() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1, activeDeadlineSeconds=60)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert 59 < stage.cluster.clock.monotonic() < 65


async def test_each_event_is_recorded_once() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.left() == [])
        await stage.cluster.settled()
        assert stage.event_messages("TrainingJobRunning") == ["job(default/linear) is running."]
        assert stage.event_messages("TrainingJobSucceeded") == [
            "job(default/linear) successfully completed."
        ]
        assert stage.event_messages("ScalingInSucceeded") == ["ScaleIn:default/in has Succeeded"]
        events = stage.cluster.objects(EVENTS)
        assert all(event["reason"] for event in events)
        assert not any("phase is Deleted" in event["message"] for event in events)
