"""ScaleIn: the named or the last workers are deleted once the launcher disconnects."""

from typing import Final

import pytest

from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.options import Options
from tests.support.elastic_harness import ONE, start_elastic_cluster
from tests.support.fake_launcher import ExecFault, Program
from tests.support.timing import LoopClock

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

SUCCEEDED: Final = ["Created", "Scaling", "ScriptExecuted", "ScaleSucceeded"]


async def test_scale_in_by_count_deletes_the_last_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(4)
        await stage.scale_in(toDelete={"count": 2})
        assert await stage.scaler_result("in") == (
            "ScaleSucceeded",
            "ScaleIn:default/in has Succeeded",
        )
        assert stage.members() == [0, 1]
        await stage.cluster.settled()
        assert stage.is_consistent()
        assert stage.scaler_conditions("in") == SUCCEEDED
        assert stage.scaler("in")["toDeletePods"] == ["linear-worker-2", "linear-worker-3"]


async def test_script_counts_as_executed_once_the_launcher_has_the_hosts_that_stay() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 20
        await stage.scale_in(toDelete={"podNames": ["linear-worker-0"]})
        await stage.cluster.until(lambda: stage.listed() == [1])
        await stage.cluster.advance(5)
        assert stage.scaler_conditions("in") == SUCCEEDED[:-1]
        await stage.scaler_result("in")
        assert stage.scaler_conditions("in") == SUCCEEDED


async def test_scale_in_by_name_deletes_only_the_named_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(4)
        before = {i: stage.uid(f"linear-worker-{i}") for i in (0, 3)}
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1", "linear-worker-2"]})
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 3]
        assert stage.is_consistent()
        assert {i: stage.uid(f"linear-worker-{i}") for i in (0, 3)} == before


async def test_scale_in_of_unknown_names_fails_and_deletes_no_pod() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        before = stage.left()
        names = ["linear-worker-1", "linear-worker-7", "linear-wroker-0"]
        await stage.scale_in(toDelete={"podNames": names})
        phase, message = await stage.scaler_result("in")
        assert phase == "ScaleFailed"
        assert "podNames has linear-worker-7, linear-wroker-0" in message
        await stage.cluster.settled()
        assert stage.left() == before
        assert stage.is_consistent()


async def test_scale_in_of_removed_workers_fails() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await stage.scaler_result("in")
        await stage.scale_in("again", toDelete={"podNames": ["linear-worker-1"]})
        assert (await stage.scaler_result("again"))[0] == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.members() == [0, 2]
        assert stage.is_consistent()


@pytest.mark.parametrize("count", [2, 3, 9])
async def test_scale_in_below_min_replicas_is_rejected(count: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3, worker={"minReplicas": 2})
        await stage.scale_in(toDelete={"count": count})
        phase, message = await stage.scaler_result("in")
        assert phase == "ScaleFailed"
        assert message.startswith("ScaleIn:default/in get to delete workers name failed, error: ")
        assert "minReplicas" in message or "less than current replicas 3" in message
        assert stage.scaler_conditions("in") == ["Created", "Scaling", "ScaleFailed"]
        await stage.cluster.settled()
        assert stage.cluster.condition("ScaleFailed") == message
        assert stage.members() == [0, 1, 2]


async def test_scale_in_of_all_workers_by_name_is_rejected() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-0", "linear-worker-1"]})
        assert (await stage.scaler_result("in"))[0] == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_scale_in_counts_and_removes_only_live_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(4)
        await stage.end("linear-worker-3", 1)
        await stage.cluster.until(lambda: stage.listed() == [0, 1, 2])
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.cluster.settled()
        assert stage.hosts() == [0, 1] == stage.workers() == stage.listed()
        await stage.scale_in("too-many", toDelete={"count": 2})
        phase, message = await stage.scaler_result("too-many")
        assert (phase, "current replicas 2" in message) == ("ScaleFailed", True)


async def test_pod_is_deleted_within_two_seconds_after_the_launcher_disconnects() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        stage.launchers.disconnects_s = 20
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: not stage.pod("linear-worker-2")["metadata"])
        assert 20 <= stage.cluster.clock.monotonic() - began <= 22.5
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"


async def test_launcher_that_never_disconnects_is_awaited_until_the_timeout() -> None:
    async with start_elastic_cluster(Options(scale_in_timeout_s=25), gently=False) as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 1000
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert 24 <= stage.cluster.clock.monotonic() - began <= 28
        await stage.cluster.settled()
        assert stage.is_consistent()
        assert stage.event_messages("TrainingJobWorkersInUse") == [
            "the launcher still used linear-worker-1 after 25 s"
        ]


async def test_timeout_passes_after_a_failover_to_a_clock_that_is_behind() -> None:
    async with start_elastic_cluster(Options(scale_in_timeout_s=25), gently=False) as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 1000
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.cluster.kill_all()
        stage.cluster.clock = LoopClock(ahead_s=-3600)
        stage.cluster.start()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        pytest.param("chosen", "users", id="before the workers were inspected"),
        pytest.param("unlisted", "deliver", id="before the hosts were written"),
    ],
)
@pytest.mark.parametrize("failed_writes", [0, 2])
async def test_launcher_has_time_to_disconnect_after_an_outage_of_the_controller(
    step: str, fault: str, failed_writes: int
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 20
        stage.launchers.faults = [ExecFault("hang", fault)]
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: "currentScaler" in stage.cluster.status())
        await stage.cluster.until(lambda: step == "chosen" or stage.hosts() == [0])
        await stage.cluster.kill_all()
        await stage.cluster.advance(300)
        stage.launchers.faults = [ExecFault("fail", "deliver", times=failed_writes)]
        stage.cluster.start()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.event_messages("TrainingJobWorkersInUse") == []


async def test_launcher_that_uses_worker_10_has_disconnected_from_worker_1() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(11)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        began = stage.cluster.clock.monotonic()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began < 5
        assert stage.members() == [0, *range(2, 11)]


@pytest.mark.parametrize("late_s", [0.1, 0.9])
async def test_index_of_a_worker_about_to_be_connected_to_is_not_reused(late_s: float) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.dials_at["linear-worker-1"] = stage.cluster.clock.monotonic() + late_s
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        assert stage.members() == [0, 1]


async def test_index_of_an_unused_worker_is_freed_after_a_second_inspection() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.avoided.add("linear-worker-1")
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        assert 1 <= stage.cluster.clock.monotonic() - began < 2
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        assert stage.members() == [0, 2]


async def test_worker_in_use_needs_no_second_inspection() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        assert stage.cluster.clock.monotonic() - began < 1


async def test_failed_inspection_counts_as_connected() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.faults = [ExecFault("fail", "users", times=3), ExecFault("hang", "users")]
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began > 10


async def test_scale_in_is_completed_after_its_request_is_deleted() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        stage.launchers.disconnects_s = 20
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: stage.listed() == [0, 1])
        await stage.cluster.user.delete(SCALE_INS, stage.cluster.key("in"))
        await stage.cluster.until(stage.is_consistent)
        assert stage.members() == [0, 1]


async def test_scale_in_script_runs_before_the_hosts_change() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(3)
        stage.launchers.programs["/less.sh"] = Program(lasts_s=25)
        await stage.scale_in(toDelete={"count": 2}, script="/less.sh", timeout=30)
        await stage.cluster.until(lambda: stage.launchers.runs)
        await stage.cluster.advance(15)
        assert stage.workers() == [0, 1, 2] == stage.listed()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        (run,) = stage.launchers.runs
        assert run.workers == ["linear-worker-1:1", "linear-worker-2:1"]
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()


@pytest.mark.parametrize(
    ("program", "members", "restarts"),
    [
        pytest.param(Program(lasts_s=25), [0, 1], [], id="removed"),
        pytest.param(Program(code=1, lasts_s=25), [0, 1, 3], ["worker-3"], id="replaced"),
    ],
)
async def test_worker_that_dies_while_the_script_runs_leaves_the_host_file(
    program: Program, members: list[int], restarts: list[str]
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3, worker={"restartPolicy": "Always"})
        stage.launchers.programs["/less.sh"] = program
        await stage.scale_in(toDelete=ONE, script="/less.sh", timeout=30)
        await stage.cluster.until(lambda: stage.launchers.runs)
        await stage.remove("linear-worker-2")
        await stage.cluster.advance(5)
        assert stage.listed() == [0, 1]
        await stage.scaler_result("in")
        await stage.cluster.settled()
        assert stage.members() == members
        assert stage.is_consistent()
        assert list(stage.cluster.status()["dlctl"].get("restarts", {})) == restarts


@pytest.mark.parametrize("program", [Program(code=1), Program(lasts_s=1000)])
async def test_scale_in_script_beyond_its_retries_keeps_the_workers(program: Program) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.programs["/less.sh"] = program
        await stage.scale_in(toDelete=ONE, script="/less.sh", timeout=5, backoffLimit=2)
        phase, message = await stage.scaler_result("in")
        code = program.code or 124
        assert (phase, f"exit code {code}" in message) == ("ScaleFailed", True)
        assert len(stage.launchers.runs) == 3
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.is_consistent()


async def test_scale_in_script_may_succeed_on_a_retry() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        stage.launchers.faults = [ExecFault("fail", "run"), ExecFault("cut", "run")]
        await stage.scale_in(toDelete=ONE, script="/less.sh", backoffLimit=2)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.members() == [0]
