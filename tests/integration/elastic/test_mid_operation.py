"""Suspension, termination and adoption in the middle of a scale operation."""

from typing import Any, Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, UID, ObjectKey, owner_reference
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.options import Options
from tests.dialects.et_operator.manifests import scale_in
from tests.integration.elastic.et_operator_jobs import left_by_et_operator
from tests.support.elastic_harness import JOBS, ONE, ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

HALF_DONE: Final = {
    "phase": "Scaling",
    "conditions": [{"type": "Scaling", "status": "True", "reason": "ScalingStart"}],
    "replicaStatuses": {},
    "restartCount": 0,
    "toDeletePods": ["linear-worker-2"],
}


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_resumed_job_has_its_lost_workers_again(
    policy: str,
) -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=300)) as stage:
        await stage.running(3, worker={"restartPolicy": policy, "maxReplicas": 3})
        await stage.end("linear-worker-2", 1)
        if policy == "OnFailure":
            await stage.cluster.until(lambda: stage.workers() == [0, 1, 3])
            await stage.end("linear-worker-3", 1)
        await stage.cluster.until(lambda: stage.listed() == [0, 1])
        await stage.edit({"spec": {"suspend": True}})
        await stage.cluster.until(lambda: stage.left() == [])
        await stage.edit({"spec": {"suspend": False}})
        await stage.until_running()
        assert len(stage.workers()) == 3
        assert stage.listed() == stage.members() == stage.workers()


async def test_worker_that_succeeds_before_use_is_recreated() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.scale_out(toAdd=ONE, backoffLimit=1)
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        before = stage.uid("linear-worker-1")
        await stage.end("linear-worker-1", 0)
        await stage.cluster.until(
            lambda: stage.runs("linear-worker-1") and stage.uid("linear-worker-1") != before
        )
        await stage.become_ready("linear-worker-1")
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"


async def test_new_workers_are_probed_together() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        coming = [f"linear-worker-{index}" for index in range(1, 7)]
        stage.cluster.node.unready.update(coming)
        before = _asked(stage)
        await stage.scale_out(toAdd={"count": len(coming)})
        await stage.cluster.until(lambda: len(stage.workers()) == 7)
        for name in coming:
            await stage.become_ready(name)
            await stage.cluster.settled()
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert _asked(stage) - before == 1


async def test_slowly_terminating_worker_is_not_reported_as_in_use() -> None:
    async with start_elastic_cluster(Options(scale_in_timeout_s=20)) as stage:
        await stage.running(2)
        stage.cluster.node.run_s = 60
        await stage.scale_in(toDelete=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.event_messages("TrainingJobWorkersInUse") == []


async def test_launcher_restarts_with_all_workers_if_the_minimum_was_raised_above_them() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(3, launcher={"restartPolicy": "OnFailure"})
        await stage.scale_in(toDelete=ONE)
        await stage.scaler_result("in")
        await stage.edit(_fewest(3))
        before = stage.uid("linear-launcher")
        await stage.end("linear-launcher", 143)
        await stage.cluster.until(
            lambda: stage.runs("linear-launcher") and stage.uid("linear-launcher") != before
        )
        assert stage.listed() == [0, 1]


async def test_request_started_by_et_operator_is_finished_with_its_pods() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.kill_all()
        await left_by_et_operator(stage)
        await stage.scale_in(toDelete=ONE)
        await stage.cluster.user.patch(
            SCALE_INS, stage.cluster.key("in"), {"status": HALF_DONE}, subresource="status"
        )
        await stage.remove("linear-worker-2")
        before = stage.uid("linear-worker-0")
        stage.cluster.start()
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == stage.listed() == [0]
        assert stage.uid("linear-worker-0") == before


async def test_request_for_a_former_job_is_not_executed_on_its_successor() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        owner = owner_reference(JOBS, name="linear", uid=UID("of-before"))
        body = {
            "apiVersion": SCALE_INS.api_version,
            "kind": SCALE_INS.kind,
            "metadata": {"name": "in", "ownerReferences": [owner]},
            "spec": {"selector": {"name": "linear"}, "toDelete": ONE},
        }
        await stage.cluster.user.create(SCALE_INS, stage.cluster.namespace, body)
        await stage.cluster.settled()
        assert stage.members() == [0, 1]
        assert stage.is_consistent()


def _fewest(count: int) -> JSON:
    return {"spec": {"etReplicaSpecs": {"worker": {"minReplicas": count}}}}


def _asked(stage: ElasticHarness) -> int:
    return sum(order == "probe" for _, order, _ in stage.launchers.commands)


async def test_scale_out_that_is_said_to_begin_later_ends_in_time() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        stage.cluster.node.unready.add("linear-worker-1")
        await stage.scale_out(toAdd=ONE, timeout=30)
        await stage.cluster.until(lambda: stage.workers() == [0, 1])
        await _forge_change(stage, since="9999-12-31T23:59:59Z")
        assert (await stage.scaler_result("out"))[0] == "ScaleFailed"
        await stage.cluster.until(lambda: stage.workers() == [0])


async def test_job_takes_no_result_from_a_request_of_another_namespace() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.cluster.node.unready.add("linear-worker-2")
        await stage.scale_out(toAdd=ONE)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        user = stage.cluster.user
        await user.create(NAMESPACES, "", {"metadata": {"name": "other"}})
        request = scale_in(toDelete=ONE)
        request["metadata"] = {"name": "in"}
        theirs = await user.create(SCALE_INS, "other", request)
        said = {"type": "ScaleFailed", "status": "True", "reason": "", "message": "confidential"}
        status = {"phase": "ScaleFailed", "conditions": [said], "replicaStatuses": {}}
        key = ObjectKey("other", "in")
        status_patch = {"status": {**status, "restartCount": 0}}
        await user.patch(SCALE_INS, key, status_patch, subresource="status")
        uid = theirs.metadata.uid
        await _forge_change(stage, scaler="ScaleIn:other/in", uid=uid)
        await stage.cluster.advance(30)
        assert "confidential" not in str(stage.cluster.status())


async def _forge_change(stage: ElasticHarness, **fields: Any) -> None:
    """Write into the status of a job as somebody who may do so."""
    patch = {"status": {"dlctl": {"membership": {"scaling": fields}}}}
    await stage.cluster.user.patch(JOBS, stage.cluster.key(), patch, subresource="status")
