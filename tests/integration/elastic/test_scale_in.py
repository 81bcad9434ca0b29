"""ScaleIns at work: workers leave, named or the last ones, once the launcher has let go."""

from typing import Final

import pytest

from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.options import Options
from tests.support.elastic_harness import start_elastic_cluster
from tests.support.fake_launcher import ExecFault, Program

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

ONE: Final = {"count": 1}


async def test_last_workers_go() -> None:
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
        assert stage.scaler("in")["toDeletePods"] == ["linear-worker-2", "linear-worker-3"]


async def test_named_workers_go_and_no_others() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(4)
        before = {i: stage.uid(f"linear-worker-{i}") for i in (0, 3)}
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1", "linear-worker-2"]})
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 3]
        assert stage.is_consistent()
        assert {i: stage.uid(f"linear-worker-{i}") for i in (0, 3)} == before


async def test_unknown_names_fail_the_request_by_name_and_no_pod_goes() -> None:
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


async def test_names_of_workers_that_went_already_fail_the_request() -> None:
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
async def test_fewer_than_min_replicas_are_refused(count: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3, worker={"minReplicas": 2})
        await stage.scale_in(toDelete={"count": count})
        phase, message = await stage.scaler_result("in")
        assert phase == "ScaleFailed"
        assert "minReplicas" in message or "less than current replicas 3" in message
        assert stage.members() == [0, 1, 2]


async def test_all_workers_cannot_be_taken_away_by_name() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-0", "linear-worker-1"]})
        assert (await stage.scaler_result("in"))[0] == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_only_workers_that_live_are_counted_and_taken() -> None:
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


async def test_pod_goes_within_two_seconds_of_the_launcher_letting_it_go() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        stage.launchers.disconnects_s = 20
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: not stage.pod("linear-worker-2")["metadata"])
        assert 20 <= stage.cluster.clock.monotonic() - began <= 22.5
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"


async def test_launcher_that_never_lets_go_is_waited_for_so_long_only() -> None:
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


async def test_launcher_that_uses_worker_10_has_let_worker_1_go() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(11)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        began = stage.cluster.clock.monotonic()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began < 5
        assert stage.members() == [0, *range(2, 11)]


@pytest.mark.parametrize("late_s", [0.1, 0.9])
async def test_worker_that_is_about_to_be_dialled_costs_no_index(late_s: float) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.dials_at["linear-worker-1"] = stage.cluster.clock.monotonic() + late_s
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        assert stage.members() == [0, 1]


async def test_worker_that_is_never_dialled_costs_its_index_and_a_second_look() -> None:
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


async def test_worker_that_is_in_use_takes_no_second_look() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        assert stage.cluster.clock.monotonic() - began < 1


async def test_launcher_that_cannot_be_looked_into_has_not_let_go() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.faults = [ExecFault("fail", "users", times=3), ExecFault("hang", "users")]
        began = stage.cluster.clock.monotonic()
        await stage.scale_in(toDelete=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began > 10


async def test_request_that_is_deleted_meanwhile_is_completed() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        stage.launchers.disconnects_s = 20
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.until(lambda: stage.listed() == [0, 1])
        await stage.cluster.user.delete(SCALE_INS, stage.cluster.key("in"))
        await stage.cluster.until(stage.is_consistent)
        assert stage.members() == [0, 1]


async def test_script_takes_the_workers_out_before_anybody_else_does() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(3)
        stage.launchers.programs["/less.sh"] = Program(lasts_s=25)
        await stage.scale_in(toDelete={"count": 2}, script="/less.sh", timeout=30)
        await stage.cluster.until(lambda: stage.launchers.runs)
        await stage.cluster.advance(20)
        assert stage.workers() == [0, 1, 2] == stage.listed()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        (run,) = stage.launchers.runs
        assert run.workers == ["linear-worker-1:1", "linear-worker-2:1"]
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()


@pytest.mark.parametrize("program", [Program(code=1), Program(lasts_s=1000)])
async def test_script_that_fails_once_too_often_leaves_the_workers(program: Program) -> None:
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


async def test_script_that_does_better_the_next_time_is_enough() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2)
        stage.launchers.faults = [ExecFault("fail", "run"), ExecFault("cut", "run")]
        await stage.scale_in(toDelete=ONE, script="/less.sh", backoffLimit=2)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.members() == [0]
