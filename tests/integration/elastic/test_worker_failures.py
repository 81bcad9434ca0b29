"""Workers that fail while their job runs: when and how they are replaced."""

from typing import Final

import pytest

from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, PODS, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.options import Options
from tests.support.elastic_harness import ElasticHarness, start_elastic_cluster
from tests.support.fake_kubelet import NODE_NAME

pytestmark = [pytest.mark.looptime(noop_cycles=8)]

ALWAYS: Final = {"restartPolicy": "Always"}
ON_FAILURE: Final = {"restartPolicy": "OnFailure"}


async def seconds_until(stage: ElasticHarness, pod: str) -> float:
    """Return how long it takes until a pod exists."""
    began = stage.cluster.clock.monotonic()
    await stage.cluster.until(lambda: stage.uid(pod))
    return stage.cluster.clock.monotonic() - began


async def until_listed(stage: ElasticHarness, *workers: int) -> None:
    await stage.cluster.until(lambda: stage.listed() == list(workers))


@pytest.mark.parametrize("code", [1, 137])
async def test_lost_worker_is_replaced_at_once_under_a_new_name(code: int) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker=ON_FAILURE)
        await stage.end("linear-worker-0", code)
        assert await seconds_until(stage, "linear-worker-2") <= 1
        await stage.cluster.settled()
        assert stage.members() == [1, 2]
        assert stage.hosts() == [1, 2] == stage.listed() == stage.workers()
        assert [len(hosts) for _, hosts in stage.launcher().listed] == [2, 1, 2]


async def test_deleted_worker_is_replaced() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker=ALWAYS)
        await stage.remove("linear-worker-1")
        assert await seconds_until(stage, "linear-worker-2") <= 1
        await stage.cluster.settled()
        assert stage.members() == [0, 2]
        assert stage.is_consistent()


@pytest.mark.parametrize(
    ("policy", "code", "members"),
    [
        ("Never", 1, [0]),
        ("Always", 0, [1, 2]),
        ("OnFailure", 0, [0]),
        ("OnFailure", 1, [1, 2]),
        ("ExitCode", 1, [0]),
        ("ExitCode", 128, [1, 2]),
        ("ExitCode", 143, [1, 2]),
        ("ExitCode", 255, [1, 2]),
    ],
)
async def test_worker_is_replaced_according_to_its_restart_policy(
    policy: str, code: int, members: list[int]
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker={"restartPolicy": policy})
        ending = 0 if members[0] else 1
        await stage.end(f"linear-worker-{ending}", code)
        left = [i for i in members if i != ending]
        await stage.cluster.until(lambda: stage.listed() == left)
        await stage.cluster.settled()
        assert stage.workers() == left
        assert stage.cluster.phase() == "Running"


async def test_worker_that_exits_with_0_is_counted_as_succeeded() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3)
        await stage.end("linear-worker-2", 0)
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.cluster.settled()
        counts = stage.cluster.status()["replicaStatuses"]["Worker"]
        assert (counts["active"], counts["succeeded"], counts["failed"]) == (1, 1, 1)


async def test_replacements_back_off() -> None:
    async with start_elastic_cluster(
        Options(restart_backoff_s=10, restart_backoff_cap_s=300)
    ) as stage:
        await stage.running(2, worker=ALWAYS)
        waits = []
        for number in range(2, 6):
            await stage.end(f"linear-worker-{number - 1}", 1)
            waits.append(await seconds_until(stage, f"linear-worker-{number}"))
            await until_listed(stage, 0, number)
        assert waits[0] <= 1
        assert waits[1:] == pytest.approx([10, 20, 40], abs=2)


async def test_worker_is_replaced_up_to_its_limit() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(2, worker={**ALWAYS, "backoffLimit": 2})
        for number in (1, 2):
            await stage.end(f"linear-worker-{number}", 1)
            await until_listed(stage, 0, number + 1)
        await stage.end("linear-worker-3", 1)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.cluster.advance(60)
        assert stage.workers() == [0]
        assert stage.cluster.phase() == "Running"


async def test_dead_workers_and_their_services_do_not_accumulate() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        await stage.running(1, worker=ALWAYS)
        for number in range(3):
            await stage.end(f"linear-worker-{number}", 1)
            await until_listed(stage, number + 1)
        await stage.cluster.until(stage.is_consistent)
        assert stage.left() == ["linear-worker-3"]


async def test_scale_out_to_the_maximum_leaves_no_room_for_a_replacement() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=60)) as stage:
        await stage.running(2, worker={**ALWAYS, "maxReplicas": 2})
        await stage.end("linear-worker-1", 1)
        await stage.cluster.until(lambda: stage.listed() == [0, 2])
        await stage.end("linear-worker-2", 1)
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.scale_out(toAdd={"count": 1})
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.advance(200)
        assert len(stage.workers()) == 2


async def test_worker_that_fails_during_a_scale_out_is_replaced() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker=ALWAYS)
        stage.launchers.reachable_after_s = {"linear-worker-2": 30}
        await stage.scale_out(toAdd={"count": 1})
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2])
        await stage.end("linear-worker-1", 1)
        assert await seconds_until(stage, "linear-worker-3") <= 1
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        await stage.cluster.until(lambda: stage.listed() == [0, 2, 3])
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_each_worker_failure_is_reported_once() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.remove("linear-worker-1")
        await stage.cluster.until(lambda: stage.listed() == [0])
        await stage.cluster.settled()
        await stage.scale_out(toAdd={"count": 1})
        await stage.scaler_result("out")
        assert stage.event_messages("TrainingJobWorkerFailed") == [
            "worker linear-worker-1 was deleted"
        ]


async def test_workers_are_evacuated_from_a_draining_node() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.disconnects_s = 5
        stage.launchers.reachable_after_s = {"linear-worker-3": 30}
        stage.cluster.node.name = "other"
        await sign(stage, NODE_NAME)
        await stage.cluster.until(lambda: stage.listed() == [2])
        assert stage.workers() == [0, 1, 2, 3]
        await stage.cluster.until(lambda: stage.workers() == [2, 3])
        assert stage.listed() == [2]
        await stage.cluster.until(lambda: stage.listed() == [2, 3])
        await stage.cluster.settled()
        assert stage.is_consistent()
        (told,) = stage.event_messages("TrainingJobNodeDraining")
        assert "linear-worker-0, linear-worker-1" in told


async def test_last_workers_stay_in_use_until_others_are_reachable() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-2": 20, "linear-worker-3": 20}
        stage.cluster.node.name = "other"
        await sign(stage, NODE_NAME)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2, 3])
        await stage.cluster.advance(10)
        assert stage.listed() == [0, 1]
        await stage.cluster.until(lambda: stage.workers() == [2, 3])
        assert stage.listed() == [2, 3]


async def test_evacuating_workers_leave_the_host_file_as_soon_as_they_are_gone() -> None:
    async with start_elastic_cluster(gently=False) as stage:
        await stage.running(2, worker={"restartPolicy": "Always"})
        stage.launchers.reachable_after_s = {"linear-worker-2": 20, "linear-worker-3": 20}
        stage.cluster.node.name = "other"
        await sign(stage, NODE_NAME)
        await stage.cluster.until(lambda: stage.workers() == [0, 1, 2, 3])
        for index in (0, 1):
            await stage.remove(f"linear-worker-{index}")
        await stage.cluster.advance(5)
        assert stage.listed() == []
        await stage.cluster.until(lambda: stage.listed() == [2, 3])
        await stage.cluster.settled()
        assert stage.is_consistent()


async def test_workers_without_another_node_stay_on_the_draining_one() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await sign(stage, NODE_NAME)
        await stage.cluster.until(lambda: stage.workers() == [2, 3])
        await stage.cluster.advance(120)
        assert stage.workers() == [2, 3]
        assert stage.listed() == []
        taints = {"spec": {"taints": None}}
        await stage.cluster.user.patch(NODES, ObjectKey("", NODE_NAME), taints)
        await stage.cluster.until(lambda: stage.listed() == [2, 3])


async def sign(stage: ElasticHarness, node: str) -> None:
    taint = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
    await stage.cluster.user.create(NODES, "", {**body, "spec": {"taints": [taint]}})


@pytest.mark.parametrize("pod", ["linear-worker-1", "linear-launcher"])
async def test_pod_with_a_removed_label_is_labelled_again_and_not_replaced(
    pod: str,
) -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2, worker=ALWAYS)
        before, uid = stage.members(), stage.uid(pod)
        body = {"metadata": {"labels": {MANAGED_BY_LABEL: None}}}
        await stage.cluster.user.patch(PODS, stage.cluster.key(pod), body)
        await stage.cluster.settled()
        assert stage.pod(pod)["metadata"]["labels"][MANAGED_BY_LABEL] == MANAGED_BY
        assert stage.uid(pod) == uid
        assert stage.members() == before == stage.listed()
        assert stage.event_messages("TrainingJobWorkerFailed") == []


async def test_worker_failing_before_the_launcher_starts_has_its_limit() -> None:
    async with start_elastic_cluster(Options(restart_backoff_s=1)) as stage:
        stage.cluster.node.unready.add("linear-worker-0")
        worker = {**ON_FAILURE, "replicas": 2, "minReplicas": 2, "backoffLimit": 1}
        await stage.submit(worker=worker)
        for _ in range(2):
            await stage.cluster.until(lambda: stage.runs("linear-worker-1"))
            await stage.end("linear-worker-1", 1)
            await stage.cluster.until(lambda: not stage.runs("linear-worker-1"))
        await stage.cluster.until(lambda: stage.cluster.phase() == "Failed")
        assert "worker-1" in stage.cluster.condition("Failed")


async def test_workers_ready_shortly_after_each_other_are_listed_together() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(3, worker=ALWAYS)
        stage.cluster.node.unready |= {"linear-worker-3", "linear-worker-4"}
        for pod in ("linear-worker-1", "linear-worker-2"):
            await stage.end(pod, 1)
        await stage.cluster.until(lambda: stage.workers() == [0, 3, 4])
        for pod in ("linear-worker-3", "linear-worker-4"):
            now = stage.cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            status = {"status": {"conditions": [ready]}}
            key = stage.cluster.key(pod)
            await stage.cluster.user.patch(PODS, key, status, subresource="status")
            await stage.cluster.advance(2)
        await until_listed(stage, 0, 3, 4)
        listed = [hosts for _, hosts in stage.launcher().listed]
        assert ("linear-worker-0", "linear-worker-3") not in listed
