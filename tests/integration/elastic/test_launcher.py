"""Launchers: their start, their files, and jobs that lose them."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import UID
from dlctl.options import Options
from dlctl.reconcilers.membership.exec_runner import ExecRunner, LauncherGoneError
from dlctl.reconcilers.membership.exec_tasks import LauncherContainer, WriteFiles
from tests.builders import template
from tests.support.elastic_harness import JOBS, ONE, ElasticHarness, start_elastic_cluster
from tests.support.fake_launcher import ExecFault, Program

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

LAUNCHER: Final = "linear-launcher"


async def test_launcher_starts_when_all_workers_are_ready() -> None:
    async with start_elastic_cluster() as stage:
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.submit()
        await stage.cluster.advance(100)
        assert not stage.uid(LAUNCHER)
        await stage.become_ready("linear-worker-1")
        await stage.until_running()
        assert stage.listed() == [0, 1]


async def test_launcher_starts_with_the_minimum_of_workers_after_the_timeout() -> None:
    async with start_elastic_cluster(Options(elastic_start_after_s=50)) as stage:
        stage.cluster.node.unready.update(("linear-worker-1", "linear-worker-2"))
        await stage.submit(worker={"replicas": 3})
        await stage.cluster.until(lambda: stage.uid(LAUNCHER))
        assert 49 < stage.cluster.clock.monotonic() < 55
        await stage.until_running()
        assert stage.listed() == [0]
        await stage.become_ready("linear-worker-2")
        await stage.cluster.until(lambda: stage.listed() == [0, 2])


async def test_launcher_never_starts_below_the_minimum_of_workers() -> None:
    async with start_elastic_cluster() as stage:
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.submit(worker={"replicas": 2, "minReplicas": 2})
        await stage.cluster.advance(1000)
        assert not stage.uid(LAUNCHER)


async def test_all_host_files_follow_the_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1, slotsPerWorker=4)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        assert stage.launcher().files == {
            "/etc/edl/hostfile": "linear-worker-0:4\nlinear-worker-1:4\n",
            "/job/hostfile": "linear-worker-0 slots=4\nlinear-worker-1 slots=4\n",
        }


async def test_launcher_that_hangs_delays_no_other_job() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.running(2, name="other")
        stage.launchers.faults = [ExecFault("hang", pod=LAUNCHER, times=100)]
        await stage.scale_out("stuck", toAdd=ONE)
        await stage.cluster.advance(3)
        began = stage.cluster.clock.monotonic()
        await stage.scale_in("quick", job="other", toDelete=ONE)
        assert (await stage.scaler_result("quick"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began <= 1
        stage.launchers.faults = []
        assert (await stage.scaler_result("stuck"))[0] == "ScaleSucceeded"


async def test_script_without_a_launcher_does_not_count_as_run() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        stage.launchers.programs["/less.sh"] = Program(lasts_s=20)
        await stage.scale_in(toDelete=ONE, script="/less.sh", backoffLimit=3)
        await stage.cluster.until(lambda: stage.launchers.runs)
        await stage.remove(LAUNCHER)
        await stage.cluster.until(lambda: len(stage.launchers.runs) == 2)
        assert stage.workers() == [0, 1]


async def test_deleted_launcher_is_recreated_with_the_current_hosts() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        first = stage.uid(LAUNCHER)
        await stage.remove(LAUNCHER)
        await stage.cluster.until(lambda: stage.uid(LAUNCHER) not in (first, ""))
        await stage.cluster.until(lambda: stage.runs(LAUNCHER))
        assert stage.listed() == [0, 1, 2]
        await stage.cluster.settled()
        assert stage.cluster.phase() == "Running"
        assert stage.is_consistent()


async def test_job_that_requires_its_launcher_fails_when_it_is_deleted() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, launcher={"restartPolicy": "Never"})
        await stage.remove(LAUNCHER)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.cluster.settled()
        assert not stage.uid(LAUNCHER)
        assert "deleted" in stage.cluster.condition("Failed")
        # Nothing was restarted, and et-operator never says so.
        stated = {c["type"]: c["status"] for c in stage.cluster.status()["conditions"]}
        assert stated["Running"] == "False"
        assert "Restarting" not in stated


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode", "Always"])
async def test_launcher_with_a_retryable_failure_is_restarted_within_the_limit(policy: str) -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(2, launcher={"restartPolicy": policy}, backoffLimit=1)
        first, worker = stage.uid(LAUNCHER), stage.uid("linear-worker-0")
        await stage.end(LAUNCHER, 137)
        await stage.cluster.until(lambda: stage.uid(LAUNCHER) not in (first, ""))
        await stage.cluster.until(lambda: stage.runs(LAUNCHER))
        assert stage.uid("linear-worker-0") == worker
        await stage.end(LAUNCHER, 137)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")


@pytest.mark.parametrize("launcher", [{}, {"restartPolicy": "Never"}, {"restartPolicy": "Always"}])
async def test_launcher_is_not_restarted_with_a_limit_of_none(launcher: dict[str, str]) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1, restartPolicy="OnFailure", launcher=launcher, backoffLimit=0)
        first = stage.uid(LAUNCHER)
        await stage.end(LAUNCHER, 137)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.cluster.settled()
        assert stage.uid(LAUNCHER) in (first, "")
        assert "its pod was deleted" not in stage.cluster.condition("Failed")


def broken_launcher() -> JSON:
    broken = template("main")
    broken["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return {"template": broken}


async def test_job_whose_launcher_can_never_be_created_fails() -> None:
    """Its workers wait with their GPUs: nothing else would end them."""
    async with start_elastic_cluster() as stage:
        await stage.submit(launcher=broken_launcher())
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert 'Not found: "data"' in stage.cluster.condition("Failed")
        await stage.cluster.until(lambda: stage.left() == [])


async def test_job_whose_launcher_can_never_be_created_keeps_its_workers_in_its_status() -> None:
    async with start_elastic_cluster() as stage:
        await stage.submit(launcher=broken_launcher(), worker={"restartPolicy": "Always"})
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.cluster.until(lambda: stage.left() == [])
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.event_messages("TrainingJobWorkerFailed") == []


async def test_request_to_a_job_whose_launcher_can_never_be_created_fails() -> None:
    async with start_elastic_cluster() as stage:
        await stage.scale_out("before", toAdd=ONE)
        await stage.submit(launcher=broken_launcher())
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        await stage.scale_in("after", toDelete=ONE)
        for name in ("before", "after"):
            phase, message = await stage.scaler_result(name)
            assert phase == "ScaleFailed"
            assert message.endswith("TrainingJob default/linear has ended")


async def test_surplus_worker_is_deleted_at_once_without_a_running_launcher() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=60)) as stage:
        await stage.running(2, launcher={"restartPolicy": "OnFailure"})
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: stage.scaler("in").get("phase") == "Scaling")
        await stage.end(LAUNCHER, 137)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.until(lambda: stage.runs(LAUNCHER))
        assert stage.listed() == [0]


async def test_command_for_a_launcher_does_not_run_in_its_successor() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        orders = len(stage.launchers.commands)
        gone = LauncherContainer(stage.cluster.key("linear-launcher"), UID("of-before"), "main")
        launchers = ExecRunner(stage.cluster.user, stage.cluster.clock)
        with pytest.raises(LauncherGoneError, match="is gone or terminating"):
            await launchers.exec(stage.cluster.key(), WriteFiles(gone, (("/x", "y\n"),), 1))
        assert len(stage.launchers.commands) == orders


def generation(stage: ElasticHarness) -> int:
    return int(stage.cluster.status("linear")["dlctl"]["membership"]["generation"])


async def test_late_delivery_of_a_former_leader_does_not_overwrite_hosts() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        first, files = generation(stage), dict(stage.launcher().files)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        assert generation(stage) > first
        pod = UID(stage.uid(LAUNCHER))
        there = LauncherContainer(stage.cluster.key(LAUNCHER), pod, "main")
        late = WriteFiles(there, tuple(files.items()), first)
        launchers = ExecRunner(stage.cluster.user, stage.cluster.clock)
        await launchers.exec(stage.cluster.key(), late)
        assert stage.listed() == [0, 1]
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        assert stage.listed() == [0]


async def test_hosts_are_delivered_after_the_status_has_lost_their_generation() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        first = generation(stage)
        lost = {"status": {"dlctl": {"membership": {"generation": None}}}}
        await stage.cluster.user.patch(JOBS, stage.cluster.key(), lost, subresource="status")
        await stage.cluster.advance(10)
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        assert stage.listed() == [0]
        assert generation(stage) > first
