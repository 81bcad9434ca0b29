"""Which requests are executed, and when: one at a time, the oldest first."""

import threading
from typing import Any

import attrs
import msgspec
import pytest

from dlctl.api.meta import (
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    owner_reference,
)
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.kube.errors import InvalidError
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.membership_state import MembershipState
from dlctl.reconcilers.membership.planner import plan_membership
from tests.support.elastic_harness import JOBS, ONE, ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]


async def test_requests_are_executed_in_order_of_creation() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-2": 10}
        for name in ("c", "a", "b"):
            await stage.scale_out(name, toAdd=ONE)
            await stage.cluster.advance(2)
        assert stage.cluster.status()["currentScaler"] == "ScaleOut:default/c"
        assert not stage.scaler("b").get("phase")
        await stage.scaler_result("b")
        added = [stage.scaler(name)["addPods"] for name in ("c", "a", "b")]
        assert added == [["linear-worker-2"], ["linear-worker-3"], ["linear-worker-4"]]


async def test_rejected_request_does_not_block_the_next() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_in("refused", toDelete={"count": 9})
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert (await stage.scaler_result("refused"))[0] == "ScaleFailed"


async def test_request_created_before_its_job_is_executed_once_the_job_exists() -> None:
    async with start_elastic_cluster() as stage:
        await stage.scale_out(toAdd=ONE)
        await stage.cluster.advance(20)
        assert stage.scaler("out") == {}
        await stage.running(2)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        assert stage.members() == [0, 1, 2]
        (request,) = stage.cluster.objects(SCALE_OUTS)
        (owner,) = request["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("TrainingJob", True)


async def test_request_with_another_owner_is_executed_too() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        plan = {"metadata": {"name": "night"}}
        owner = await stage.cluster.user.create(CONFIG_MAPS, stage.cluster.namespace, plan)
        reference = owner_reference(CONFIG_MAPS, name="night", uid=owner.metadata.uid)
        body = {
            "apiVersion": SCALE_OUTS.api_version,
            "kind": SCALE_OUTS.kind,
            "metadata": {"name": "out", "ownerReferences": [reference]},
            "spec": {"selector": {"name": "linear"}, "toAdd": ONE},
        }
        await stage.cluster.user.create(SCALE_OUTS, stage.cluster.namespace, body)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"


async def test_requests_end_with_their_job() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-2": 1000}
        await stage.scale_out("begun", toAdd=ONE)
        await stage.cluster.until(lambda: stage.scaler("begun").get("phase") == "Scaling")
        await stage.scale_in("waits", toDelete=ONE)
        await stage.end("linear-launcher")
        for name in ("begun", "waits"):
            phase, message = await stage.scaler_result(name)
            assert (phase, "default/linear has ended" in message) == ("ScaleFailed", True)
        await stage.scale_in("late", toDelete=ONE)
        assert (await stage.scaler_result("late"))[0] == "ScaleFailed"
        await stage.cluster.until(lambda: stage.left() == [])
        assert stage.cluster.phase() == "Succeeded"


async def test_jobs_of_the_same_name_in_two_namespaces_are_independent() -> None:
    async with start_elastic_cluster() as stage:
        await stage.cluster.user.create(NAMESPACES, "", {"metadata": {"name": "other"}})
        other = ElasticHarness(attrs.evolve(stage.cluster, namespace="other"), stage.launchers)
        await stage.running(3)
        await other.running(2)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await other.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert (await other.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert (stage.members(), other.members()) == ([0, 2], [0, 1, 2])
        assert stage.is_consistent()
        assert other.is_consistent()


async def test_selection_is_persisted_before_it_is_executed() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        chosen: list[Any] = []

        def notice(change: StorageEvent) -> None:
            gone = change.new is None or change.new.meta.deletion_timestamp
            if change.table == table_of(PODS) and gone and not chosen:
                chosen.append(stage.cluster.status()["dlctl"]["membership"]["scaling"]["workers"])

        stage.cluster.server.storage.observers.append(notice)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await stage.scaler_result("in")
        assert chosen == [[1]]


async def test_controller_with_stale_stores_removes_only_the_named_worker() -> None:
    async with start_elastic_cluster() as stage:
        late = [
            Fault(verb="watch", resource=name, user_agent="dlctl", lag_s=1.5, times=None)
            for name in (
                JOBS.group_resource,
                SCALE_INS.group_resource,
                SCALE_OUTS.group_resource,
                "pods",
            )
        ]
        for fault in late:
            stage.cluster.server.faults.add(fault)
        await stage.cluster.kill_all()
        stage.cluster.start()
        await stage.running(3)
        await stage.scale_in(toDelete={"podNames": ["linear-worker-1"]})
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("in"))[0] == "ScaleSucceeded"
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.settled()
        assert stage.members() == [0, 2, 3]
        assert stage.is_consistent()


async def test_failed_status_write_is_repeated() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        for reset in ("before", "after", "before"):
            fault = Fault(
                verb="patch",
                resource=JOBS.group_resource,
                subresource="status",
                user_agent="dlctl",
                reset=reset,
            )
            stage.cluster.server.faults.add(fault)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        await stage.scale_out("next", toAdd=ONE)
        await stage.scaler_result("next")
        assert stage.scaler("next")["addPods"] == ["linear-worker-3"]
        assert stage.members() == [0, 1, 2, 3]


@pytest.mark.parametrize(("replicas", "members"), [(4, [0, 1, 2, 3]), (1, [0])])
async def test_changed_replica_count_scales_like_a_request(
    replicas: int, members: list[int]
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 5
        stage.launchers.reachable_after_s = {"linear-worker-3": 10}
        await edit_replicas(stage, replicas)
        await stage.cluster.until(lambda: stage.cluster.phase() == "Scaling")
        await stage.cluster.until(lambda: stage.listed() == members)
        await stage.cluster.settled()
        assert stage.members() == members
        assert stage.is_consistent()
        assert len(stage.launcher().listed) == 2


async def test_scale_subresource_scales_within_the_bounds() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker={"maxReplicas": 3, "minReplicas": 2})
        scale = {"spec": {"replicas": 3}}
        key = stage.cluster.key()
        await stage.cluster.user.patch(JOBS, key, scale, subresource="scale")
        await stage.cluster.until(lambda: stage.listed() == [0, 1, 2])
        for wrong in (1, 4):
            body = {"spec": {"replicas": wrong}}
            with pytest.raises(InvalidError):
                await stage.cluster.user.patch(JOBS, key, body, subresource="scale")
        path = JOBS.path(key.namespace, key.name, "scale")
        seen = msgspec.json.decode(await stage.cluster.user.get_raw(path))
        assert seen["status"]["replicas"] == 3
        assert "training-job-role=worker" in seen["status"]["selector"]


async def test_changed_replica_count_waits_for_the_running_request() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-2": 20}
        await stage.scale_out(toAdd=ONE)
        await stage.cluster.until(lambda: stage.scaler("out").get("phase") == "Scaling")
        await edit_replicas(stage, 4)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.until(lambda: stage.listed() == [0, 1, 2, 3])


async def test_workers_of_a_large_job_are_selected_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = set[str]()

    def noted(state: MembershipState) -> MembershipPlan:
        threads.add(threading.current_thread().name)
        return plan_membership(state)

    monkeypatch.setattr("dlctl.reconcilers.membership.manager.plan_membership", noted)
    monkeypatch.setattr("dlctl.reconcilers.large_jobs.threads.MIN_COST_FOR_THREAD", 1)
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_out("more", toAdd=ONE)
        assert (await stage.scaler_result("more"))[0] == "ScaleSucceeded"
    assert threads == {"plan_0"}


async def edit_replicas(stage: ElasticHarness, replicas: int) -> None:
    await stage.edit({"spec": {"etReplicaSpecs": {"worker": {"replicas": replicas}}}})
