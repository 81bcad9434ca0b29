"""ScaleOut: new workers are listed once reachable, and removed after the timeout."""

from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.et_operator.resources import SCALE_OUTS
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.elastic_harness import ONE, ElasticHarness, start_elastic_cluster
from tests.support.fake_launcher import ExecFault, Program
from tests.support.outcomes import KEEPS_RUNNING, Exit, script_of

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

TWO: Final = {"count": 2}
NEVER: Final = float("inf")
SUCCEEDED: Final = ["Created", "Scaling", "ScriptExecuted", "ScaleSucceeded"]


async def test_scale_out_adds_and_lists_workers_together() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_out(toAdd=TWO)
        assert await stage.scaler_result("out") == (
            "ScaleSucceeded",
            "ScaleOut:default/out has Succeeded",
        )
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2, 3]
        assert stage.is_consistent()
        assert stage.scaler_conditions("out") == SUCCEEDED
        assert stage.scaler("out")["addPods"] == ["linear-worker-2", "linear-worker-3"]
        listed = [len(hosts) for _, hosts in stage.launcher().listed]
        assert listed == [2, 4]
        assert stage.pod("linear-worker-2")["metadata"]["labels"]["scaleout-name"] == "out"


async def test_worker_is_listed_once_it_is_reachable_from_the_launcher() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-1": 30, "linear-worker-2": 20}
        await stage.scale_out(toAdd=TWO)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        came = stage.cluster.clock.monotonic()
        assert stage.hosts() == [0]
        await stage.scaler_result("out")
        assert 29 < stage.cluster.clock.monotonic() - came < 45
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_job_stays_running_while_a_new_worker_is_created_again() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1, worker={"restartPolicy": "OnFailure"})
        before = running_condition(stage)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.scale_out(toAdd={"count": 1})
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.cluster.advance(2)
        failed = stage.uid("linear-worker-1")
        await stage.end("linear-worker-1", 139)
        stage.cluster.node.unready.clear()
        await stage.cluster.until(lambda: stage.uid("linear-worker-1") not in (failed, ""))
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert running_condition(stage) == before
        assert stage.condition_statuses().keys().isdisjoint({"Restarting"})
        (message,) = stage.event_messages("TrainingJobRestarting")
        assert message.startswith("restarting worker-1: Error, exit code 139")


def running_condition(stage: ElasticHarness) -> JSON:
    return next(c for c in stage.cluster.status()["conditions"] if c["type"] == "Running")


async def test_worker_that_is_not_ready_is_not_listed() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.scale_out(toAdd={"count": 1}, timeout=40)
        await stage.cluster.advance(30)
        assert stage.listed() == [0]
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"


async def test_scale_out_timeout_removes_only_its_own_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        before = [stage.uid(f"linear-worker-{i}") for i in (0, 1)]
        stage.launchers.reachable_after_s = {"linear-worker-3": NEVER}
        await stage.scale_out(toAdd=TWO, timeout=60)
        phase, message = await stage.scaler_result("out")
        assert phase == "ScaleFailed"
        assert message.startswith("scaleout job ScaleOut:default/out execution timeout: ")
        assert stage.cluster.condition("ScaleFailed") == message
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.is_consistent()
        assert [stage.uid(f"linear-worker-{i}") for i in (0, 1)] == before
        assert len(stage.launcher().listed) == 1


async def test_scale_out_succeeds_with_its_min_count() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-2": NEVER}
        await stage.scale_out(toAdd={"count": 2, "minCount": 1}, timeout=60)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.is_consistent()


async def test_scale_out_below_its_min_count_adds_no_worker() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-2": NEVER, "linear-worker-3": NEVER}
        await stage.scale_out(toAdd={"count": 3, "minCount": 2}, timeout=60)
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()


async def test_scale_out_above_max_replicas_is_rejected() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker={"maxReplicas": 3})
        await stage.scale_out(toAdd=TWO)
        phase, message = await stage.scaler_result("out")
        assert phase == "ScaleFailed"
        assert "maxReplicas of TrainingJob default/linear is 3" in message
        await stage.scale_out("less", toAdd={"count": 1})
        assert (await stage.scaler_result("less"))[0] == "ScaleSucceeded"
        assert stage.members() == [0, 1, 2]


async def test_worker_that_fails_before_use_is_recreated_within_the_limit() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-1": 20}
        await stage.scale_out(toAdd={"count": 1}, timeout=300, backoffLimit=1)
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        first = stage.uid("linear-worker-1")
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.uid("linear-worker-1") not in (first, ""))
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_worker_beyond_its_retries_fails_the_request_by_name() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-1": 20}
        await stage.scale_out(toAdd={"count": 1}, timeout=300)
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await stage.end("linear-worker-1", 1)
        phase, message = await stage.scaler_result("out")
        assert (phase, "linear-worker-1" in message) == ("ScaleFailed", True)
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()


async def test_new_worker_that_keeps_failing_is_created_again_with_a_back_off() -> None:
    async with start_elastic_cluster() as stage:
        script = script_of(
            elastic_job(), {"launcher-0": [KEEPS_RUNNING], "worker-1": [Exit(1)] * 10_000}
        )
        await stage.submit(worker={"replicas": 1}, script=script)
        await stage.until_running()
        stage.launchers.reachable_after_s = {"linear-worker-1": NEVER}
        await stage.scale_out(toAdd=ONE, timeout=500, backoffLimit=50)
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"
        pods = {replica.index: n for (_, replica), n in stage.cluster.history.created.items()}
        # Again at once, then after 10 s, 20 s, 40 s, 80 s and 160 s.
        assert pods[1] == 7
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_name_of_a_failed_worker_is_not_reused() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.scale_out(toAdd=TWO)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.hosts() == [0, 2, 3] == stage.listed() == stage.workers()


async def test_name_of_a_drained_worker_is_reused() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_in(toDelete={"count": 1})
        await stage.scaler_result("in")
        await stage.scale_out(toAdd=TWO)
        await stage.scaler_result("out")
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2]
        assert stage.is_consistent()


@pytest.mark.parametrize("script", [{}, {"script": "/leave.sh"}], ids=["plain", "script"])
async def test_index_of_a_worker_whose_process_died_is_not_reused(script: dict[str, str]) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(4)
        stage.launchers.avoided.add("linear-worker-3")
        await stage.scale_in(toDelete={"count": 1}, **script)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.scale_out(toAdd={"count": 1})
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2, 4] == stage.listed()


async def test_index_is_reused_while_the_launcher_uses_no_worker() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.avoided |= {"linear-worker-0", "linear-worker-1"}
        await stage.scale_in(toDelete={"count": 1})
        await stage.scaler_result("in")
        await stage.scale_out(toAdd={"count": 1})
        await stage.scaler_result("out")
        assert stage.members() == [0, 1]


async def test_deleted_scale_out_leaves_no_worker_behind() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-3": NEVER}
        await stage.scale_out(toAdd=TWO)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2, 3])
        await stage.cluster.user.delete(SCALE_OUTS, stage.cluster.key("out"))
        await stage.cluster.until(stage.is_consistent)
        assert stage.members() == [0, 1]
        await stage.scale_out("next", toAdd={"count": 1})
        assert (await stage.scaler_result("next"))[0] == "ScaleSucceeded"
        assert stage.members() == [0, 1, 2]


async def test_scale_out_script_gets_the_workers_and_its_variables() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        env = [{"name": "A", "value": "it's 1"}, {"name": "B", "value": "2"}]
        await stage.scale_out(toAdd=TWO, script="/more.sh", env=env)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        (run,) = stage.launchers.runs
        assert run.workers == ["linear-worker-1:1", "linear-worker-2:1"]
        assert run.variables == ["A=it's 1", "B=2"]
        assert stage.scaler_conditions("out") == SUCCEEDED
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_failed_scale_out_script_removes_the_new_workers() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.programs["/more.sh"] = Program(code=3)
        await stage.scale_out(toAdd=TWO, script="/more.sh", backoffLimit=1)
        phase, message = await stage.scaler_result("out")
        assert (phase, "exit code 3" in message) == ("ScaleFailed", True)
        assert message.startswith("ScaleOut:default/out execute script failed, error: ")
        assert stage.cluster.condition("ScaleFailed") == message
        assert len(stage.launchers.runs) == 2
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()


async def test_failed_delivery_is_retried_until_it_succeeds() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.launchers.faults = [
            ExecFault("fail", "deliver"),
            ExecFault("cut", "deliver", after=True),
            ExecFault("refuse", "deliver"),
            ExecFault("hang", "deliver"),
        ]
        await stage.scale_out(toAdd=TWO)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert stage.listed() == [0, 1, 2]


async def test_unreachable_launcher_delays_a_request_only_until_its_timeout() -> None:
    async with start_elastic_cluster(Options(scale_in_timeout_s=20)) as stage:
        await stage.running(1)
        stage.launchers.faults = [ExecFault("fail", "deliver", times=100)]
        await stage.scale_out(toAdd=TWO, timeout=30)
        phase, message = await stage.scaler_result("out")
        assert (phase, "was not updated" in message) == ("ScaleFailed", True)
        # The launcher may know them.
        assert stage.workers() == stage.members() == [0, 1, 2]


async def test_default_timeout_of_new_workers_is_the_controllers() -> None:
    async with start_elastic_cluster(Options(scale_out_timeout_s=30)) as stage:
        await stage.running(1)
        stage.launchers.reachable_after_s = {"linear-worker-1": NEVER}
        await stage.scale_out(toAdd={"count": 1})
        began = stage.cluster.clock.monotonic()
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"
        assert 28 < stage.cluster.clock.monotonic() - began < 33


async def test_rejected_worker_is_retried_until_the_timeout() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        full = Fault(
            verb="create",
            resource="pods",
            user_agent="dlctl",
            times=None,
            status=StatusError(403, "Forbidden", "exceeded quota"),
        )
        stage.cluster.server.faults.add(full)
        await stage.scale_out(toAdd=TWO, timeout=60)
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"
        await stage.cluster.settled()
        assert stage.members() == [0]
        assert stage.is_consistent()
        assert stage.cluster.phase() == "Running"


async def test_pending_workers_are_listed_in_the_launcher_created_later() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, launcher={"restartPolicy": "OnFailure"})
        stage.launchers.reachable_after_s = {"linear-worker-1": 20}
        await stage.scale_out(toAdd=TWO)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        await stage.end("linear-launcher", 137)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 1, 2]
        assert stage.is_consistent()
