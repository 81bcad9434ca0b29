"""Lifecycle of elastic jobs: failures, restarts, suspension, clean-up."""

from typing import Any, Final

import pytest

from dlctl.api.gangs import VOLCANO_POD_GROUPS
from dlctl.api.meta import EVENTS, PODS
from dlctl.options import Options
from dlctl.reconcilers.children.kueue import FINALIZER
from tests.builders import template
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.elastic_harness import JOBS, ElasticHarness, start_elastic_cluster
from tests.support.outcomes import Exit
from tests.support.pod_groups import admit, kinds_with_gangs, serve_pod_groups

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

JSON = dict[str, Any]
ONE: Final = {"count": 1}
LAUNCHER: Final = "linear-launcher"
SUSPENDED: Final = "job-supervisor.kube-ai.io/job-suspended"
WAITS_FOR_RESOURCES: Final = "TrainingJob linear is waiting resource timeout."


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
        types = [condition["type"] for condition in stage.cluster.status()["conditions"]]
        assert types == ["Created", "WorkersCreated", "WorkersReady", "LauncherCreated", end]


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


@pytest.mark.parametrize(("policy", "left"), [("Never", [0]), ("OnFailure", [0, 1])])
async def test_worker_failure_before_the_launcher_starts_does_not_block_the_job(
    policy: str, left: list[int]
) -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        stage.cluster.node.unready.update(("linear-worker-0", "linear-worker-1"))
        await stage.submit(worker={"replicas": 2, "restartPolicy": policy})
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        stage.cluster.node.unready.clear()
        await stage.end("linear-worker-1", 1)
        await stage.cluster.advance(5)
        await stage.become_ready("linear-worker-0")
        await stage.until_running()
        assert stage.listed() == left


async def test_job_with_too_few_workers_to_start_fails_with_their_cause() -> None:
    async with start_elastic_cluster() as stage:
        stage.cluster.node.unready.add("linear-worker-0")
        await stage.submit(worker={"replicas": 2, "minReplicas": 2})
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert "worker-1" in stage.cluster.condition("Failed")


async def test_retryable_failure_restarts_the_whole_job_with_the_same_number_of_workers() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=30)) as stage:
        await stage.running(2, restartPolicy="OnFailure", backoffLimit=1)
        await stage.scale_out(toAdd={"count": 2})
        await stage.scaler_result("out")
        before = stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 137)
        failed = stage.cluster.clock.monotonic()
        await stage.cluster.until(lambda: stage.cluster.pods() == [LAUNCHER])
        assert stage.cluster.clock.monotonic() - failed <= 2
        await stage.cluster.until(lambda: stage.runs(LAUNCHER))
        assert 28 < stage.cluster.clock.monotonic() - failed < 35
        assert stage.listed() == [0, 1, 2, 3]
        assert stage.uid("linear-worker-0") != before
        await stage.until_running()
        status = stage.cluster.status()
        assert status["restartCount"] == 1
        assert "completionTime" not in status
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"


async def test_whole_job_restarts_even_if_kueue_keeps_its_pods() -> None:
    kept = {"template": {**template("main"), "metadata": {"finalizers": [FINALIZER]}}}
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", worker=kept, launcher=kept)
        before = stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.status().get("restartCount") == 1)
        await stage.until_running()
        assert stage.uid("linear-worker-0") != before


async def test_whole_job_restarts_up_to_its_limit() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", backoffLimit=2)
        for count in (1, 2):
            await stage.end(LAUNCHER, 143)
            await restarted(stage, count)
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.cluster.until(lambda: stage.left() == [])
        assert stage.cluster.status()["restartCount"] == 2
        assert stage.cluster.status()["completionTime"]


async def test_job_that_fails_after_whole_job_restarts_has_never_been_restarting() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, restartPolicy="OnFailure", backoffLimit=1)
        await stage.end(LAUNCHER, 143)
        await restarted(stage, 1)
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert condition_statuses(stage) == {
            "Created": "True",
            "WorkersCreated": "True",
            "WorkersReady": "True",
            "LauncherCreated": "True",
            "Running": "False",
            "Failed": "True",
        }


async def test_restarted_job_waits_for_all_its_workers_again() -> None:
    async with start_elastic_cluster(
        Options(restart_backoff_s=1, elastic_start_after_s=60)
    ) as stage:
        await stage.running(2, restartPolicy="OnFailure")
        await stage.cluster.advance(600)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.end(LAUNCHER, 143)
        await stage.cluster.until(lambda: stage.cluster.pods() == [])
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.cluster.advance(30)
        assert not stage.uid(LAUNCHER)
        await stage.become_ready("linear-worker-1")
        await stage.until_running()
        assert stage.listed() == [0, 1]


async def test_job_restart_ends_a_running_request() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(2, restartPolicy="OnFailure")
        stage.launchers.reachable_after_s = {"linear-worker-2": 20}
        await stage.scale_out(toAdd=ONE)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        await stage.end(LAUNCHER, 143)
        phase, _ = await stage.scaler_result("out")
        await stage.until_running()
        await stage.cluster.settled()
        assert stage.members() == ([0, 1, 2] if phase == "ScaleSucceeded" else [0, 1])
        assert stage.is_consistent()
        assert "currentScaler" not in stage.cluster.status()


@pytest.mark.parametrize("code", [1, 2, 127])
async def test_permanent_failure_fails_the_job_at_once(code: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, restartPolicy="OnFailure")
        await stage.end(LAUNCHER, code)
        failed = stage.cluster.clock.monotonic()
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert stage.cluster.clock.monotonic() - failed <= 1
        assert stage.cluster.status()["restartCount"] == 0


@pytest.mark.parametrize("by", ["annotation", "spec"])
async def test_resumed_job_has_the_same_number_of_workers(by: str) -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        await stage.edit(_suspend(by, suspended=True))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Suspended")
        await stage.cluster.until(lambda: stage.left() == [] and not stage.uid(LAUNCHER))
        await stage.cluster.settled()
        assert stage.hosts() == []
        await stage.edit(_suspend(by, suspended=False))
        await stage.until_running()
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2]
        assert stage.is_consistent()


async def test_annotation_suspends_a_job_with_one_condition_and_leaves_the_others() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        before = condition_statuses(stage)
        await stage.edit(_suspend("annotation", suspended=True))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Suspended")
        await stage.cluster.settled()
        assert condition_statuses(stage) == {**before, "Waiting": "True", "Suspended": "True"}
        assert stage.cluster.condition("Suspended") == WAITS_FOR_RESOURCES
        assert stage.event_messages("WaitingResourceTimeout") == [WAITS_FOR_RESOURCES]
        await stage.edit(_suspend("annotation", suspended=False))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Created")
        assert condition_statuses(stage)["Running"] == "False"
        await stage.until_running()
        assert condition_statuses(stage) == {**before, "Suspended": "False"}


async def test_job_created_suspended_by_annotation_is_created_once_resumed() -> None:
    async with start_elastic_cluster() as stage:
        await stage.submit(annotations={SUSPENDED: "true"})
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Suspended"
        assert condition_statuses(stage) == {"Waiting": "True", "Suspended": "True"}
        assert "startTime" not in stage.cluster.status()
        await stage.edit(_suspend("annotation", suspended=False))
        await stage.until_running()
        assert condition_statuses(stage)["Created"] == "True"


async def test_suspending_a_finished_job_changes_nothing() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        await stage.end(LAUNCHER)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Succeeded")
        await stage.edit(_suspend("annotation", suspended=True))
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Succeeded"
        assert stage.uid(LAUNCHER)


async def test_job_created_suspended_has_no_pods() -> None:
    async with start_elastic_cluster() as stage:
        await stage.submit(suspend=True)
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Suspended"
        assert stage.left() == []
        await stage.edit({"spec": {"suspend": False}})
        await stage.until_running()


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


async def test_gang_counts_the_workers_and_puts_the_launcher_into_its_queue() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.kill_all()
        await serve_pod_groups(stage.cluster.user, VOLCANO_POD_GROUPS)
        stage.cluster.start(
            kinds=[kind for kind in kinds_with_gangs("volcano") if kind.resource == JOBS]
        )
        await stage.submit()
        await stage.cluster.until(lambda: stage.cluster.objects(VOLCANO_POD_GROUPS))
        await stage.cluster.settled()
        assert stage.left() == ["linear-worker-0", "linear-worker-1"]
        assert stage.cluster.pods() == []
        await admit(stage.cluster)
        await stage.until_running()
        (group,) = stage.cluster.objects(VOLCANO_POD_GROUPS)
        assert group["spec"]["minMember"] == 2
        ganged_pods = [pod for pod in stage.cluster.pods() if joins(stage, pod)]
        assert ganged_pods == [LAUNCHER, "linear-worker-0", "linear-worker-1"]


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


def condition_statuses(stage: ElasticHarness) -> dict[str, str]:
    """Return the status of each condition by type."""
    return {c["type"]: c["status"] for c in stage.cluster.status()["conditions"]}


def _suspend(by: str, *, suspended: bool) -> JSON:
    if by == "spec":
        return {"spec": {"suspend": suspended}}
    return {"metadata": {"annotations": {SUSPENDED: "true" if suspended else None}}}


async def restarted(stage: ElasticHarness, count: int) -> None:
    await stage.cluster.until(lambda: stage.cluster.status()["restartCount"] == count)
    await stage.until_running()


def joins(stage: ElasticHarness, pod: str) -> bool:
    """Return whether a pod belongs to a gang."""
    annotations = stage.pod(pod)["metadata"].get("annotations") or {}
    return "scheduling.k8s.io/group-name" in annotations
