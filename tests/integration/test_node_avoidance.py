"""A cluster of several nodes: jobs avoid those that others have charged, as long as they can."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey
from dlctl.api.objects.nodes import CHARGED_TAINT, NODES
from dlctl.api.objects.pods import AVOIDED_NODES
from dlctl.clock import timestamp
from dlctl.leaderelection.leadership import NoLeaderElection
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.storage.stored_objects import StorageEvent
from dlctl.options import Options
from dlctl.reconcilers.avoidance.dropped_avoidance import PATIENCE_S
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness, start_cluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Exit, Outcome
from tests.support.running_controller import RunningController

pytestmark = [
    pytest.mark.looptime(noop_cycles=8),
    pytest.mark.embedded_only("it schedules pods itself, by their node affinity"),
]
FAULTY: Final = "faulty"
KIND: Final = kind_of("kubeflow.org/v1", "PyTorchJob")


def excluded_hosts(pod: JSON) -> set[str]:
    required = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = required.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return {
        host
        for term in terms.get("nodeSelectorTerms") or ()
        for expression in term["matchExpressions"]
        for host in expression["values"]
    }


async def add_nodes(cluster: ClusterHarness, *free: str) -> None:
    """Add three nodes; pods get the first of the ``free`` ones that they do not avoid."""
    for name in (FAULTY, "node-b", "node-c"):
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": f"host-{name}"}}
        await cluster.user.create(NODES, "", {"metadata": metadata})

    def choose(pod: JSON) -> str | None:
        hosts = excluded_hosts(pod)
        return next((name for name in free if f"host-{name}" not in hosts), None)

    cluster.node.choose_node = choose


async def run(cluster: ClusterHarness, name: str, *, ends: bool = True) -> None:
    outcome: Outcome = DONE if ends else KEEPS_RUNNING
    script: dict[str, list[Outcome]] = {"master-0": [outcome], "worker-0": [KEEPS_RUNNING]}
    await cluster.submit(training_job("PyTorchJob", name, Master=1, Worker=1), script)
    if ends:
        await cluster.ended(name)


async def charge(cluster: ClusterHarness, *jobs: str, node: str = FAULTY) -> None:
    """Record in the statuses of jobs that one of their attempts ended by a fault of a node."""
    now = timestamp(cluster.clock.now())
    for name in jobs:
        attempt = {
            **{"number": 0, "startTime": now, "endTime": now, "time": now},
            **{"cause": "Hardware", "confidence": "High", "node": node},
        }
        patch = {"status": {"dlctl": {"attempts": [attempt]}}}
        await cluster.user.patch(KIND.resource, cluster.key(name), patch, subresource="status")
    await cluster.settled()


def nodes_of(cluster: ClusterHarness, job: str) -> Sequence[str]:
    pods = [pod for pod in cluster.objects(PODS) if pod["metadata"]["name"].startswith(job)]
    return sorted({pod["spec"].get("nodeName", "") for pod in pods})


class Standby(NoLeaderElection):
    """The leadership of a controller that waits for its election."""

    def __init__(self) -> None:
        self.elected = asyncio.Event()

    @asynccontextmanager
    async def leading(self, stop: asyncio.Event) -> AsyncIterator[bool]:
        await self.elected.wait()
        yield True


async def test_standby_knows_the_charges_of_jobs_that_were_deleted_before_it_leads() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        leader, standby = cluster.start(), Standby()
        second = cluster.start(leadership=standby)
        await run(cluster, "one")
        await run(cluster, "two")
        await charge(cluster, "one", "two")
        for name in ("one", "two"):
            await cluster.user.delete(KIND.resource, cluster.key(name))
        await cluster.settled()
        assert (reported(leader, "node_charges_total"), reported(leader, "avoided_nodes")) == (2, 1)
        assert (reported(second, "node_charges_total"), reported(second, "avoided_nodes")) == (0, 0)
        await leader.kill()
        standby.elected.set()
        await run(cluster, "three", ends=False)
        await cluster.until(lambda: nodes_of(cluster, "three") == ["node-b"])
        await charge(cluster, "three")
        assert reported(second, "node_charges_total") == 1


def reported(controller: RunningController, name: str) -> float:
    """Return the sum of a metric of dlctl."""
    metrics = getattr(controller.manager.metrics, f"dlctl_{name}").collect()
    samples = (sample for metric in metrics for sample in metric.samples)
    return float(sum(one.value for one in samples if one.name == f"dlctl_{name}"))


async def test_faulty_node_is_avoided_from_its_second_charge_on() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        cluster.start()
        for name in ("one", "two"):
            await run(cluster, name)
        await charge(cluster, "one")
        await run(cluster, "three", ends=False)
        await cluster.until(lambda: nodes_of(cluster, "three") == [FAULTY])
        await charge(cluster, "two")
        await run(cluster, "four", ends=False)
        await cluster.until(lambda: nodes_of(cluster, "four") == ["node-b"])
        pods = [p for p in cluster.objects(PODS) if p["metadata"]["name"].startswith("four")]
        assert {pod["metadata"]["annotations"][AVOIDED_NODES] for pod in pods} == {FAULTY}
        assert FAULTY in cluster.events("four")["PyTorchJobNodesAvoided"]
        # Running pods stay where they are.
        assert nodes_of(cluster, "three") == [FAULTY]


async def test_replica_does_not_return_to_the_node_that_failed_it() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
        faulty = ObjectKey("", FAULTY)
        body = {"status": {"conditions": [ready]}}
        await cluster.user.patch(NODES, faulty, body, subresource="status")
        cluster.start()
        job = training_job("PyTorchJob", "one", Master=1, Worker=1)
        job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
        script: dict[str, list[Outcome]] = {
            "master-0": [KEEPS_RUNNING],
            "worker-0": [Exit(137), KEEPS_RUNNING],
        }
        await cluster.submit(job, script)
        await cluster.until(lambda: nodes_of(cluster, "one-worker") == ["node-b"])
        (attempt, *_) = cluster.status("one")["dlctl"]["attempts"]
        assert (attempt["cause"], attempt["node"]) == ("Node", FAULTY)
        # One job proves nothing to the others.
        await run(cluster, "two", ends=False)
        await cluster.until(lambda: nodes_of(cluster, "two") == [FAULTY])


async def test_new_leader_avoids_the_same_nodes() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        first = cluster.start()
        for name in ("one", "two"):
            await run(cluster, name)
        await charge(cluster, "one", "two")
        await first.stop()
        cluster.start()
        await run(cluster, "three", ends=False)
        await cluster.until(lambda: nodes_of(cluster, "three") == ["node-b"])


async def test_job_that_fits_nowhere_else_gives_up_avoiding_nodes() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY)
        first = cluster.start()
        for name in ("one", "two"):
            await run(cluster, name)
        await charge(cluster, "one", "two")
        await run(cluster, "three", ends=False)
        await cluster.advance(PATIENCE_S / 2)
        assert nodes_of(cluster, "three") == [""]
        # The next leader takes over in the middle of it.
        await first.kill()
        cluster.start()
        await cluster.until(lambda: nodes_of(cluster, "three") == [FAULTY])
        await cluster.settled()
        assert FAULTY in cluster.events("three")["PyTorchJobNodesNotAvoided"]
        assert "avoidanceDroppedTime" in cluster.status("three")["dlctl"]
        pods = [p for p in cluster.objects(PODS) if p["metadata"]["name"].startswith("three")]
        assert not any(excluded_hosts(pod) for pod in pods)
        assert cluster.phase("three") == "Running"
        # Neither pod counts as a failure.
        assert not cluster.status("three")["dlctl"].get("restarts")


def taints(cluster: ClusterHarness) -> dict[str, list[str]]:
    """Return the keys of the taints of each node that has any."""
    stored = [s.decoded(NODES) for s in cluster.server.storage.objects(NODES, "")]
    keys = {
        node["metadata"]["name"]: [t["key"] for t in node.get("spec", {}).get("taints") or ()]
        for node in stored
    }
    return {name: found for name, found in keys.items() if found}


async def test_faulty_node_is_tainted_until_its_charges_expire() -> None:
    options = Options(taint_charged_nodes=True, node_charge_ttl_s=1000)
    async with start_cluster(installed=[KIND], kinds=[KIND], options=options) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        own = {"spec": {"taints": [{"key": "example.com/own", "effect": "NoSchedule"}]}}
        await cluster.user.patch(NODES, ObjectKey("", FAULTY), own)
        first = cluster.start()
        for name in ("one", "two"):
            await run(cluster, name)
        await charge(cluster, "one")
        assert taints(cluster) == {FAULTY: ["example.com/own"]}
        await charge(cluster, "two")
        assert taints(cluster) == {FAULTY: ["example.com/own", CHARGED_TAINT]}
        # The next leader knows that the charges are there, and later that they are no more.
        await first.stop()
        cluster.start()
        await cluster.advance(400)
        assert taints(cluster) == {FAULTY: ["example.com/own", CHARGED_TAINT]}
        await cluster.advance(1000)
        assert taints(cluster) == {FAULTY: ["example.com/own"]}


async def test_deleted_nodes_leave_the_taints_to_others() -> None:
    options = Options(taint_charged_nodes=True, max_avoided_nodes=1)
    async with start_cluster(installed=[KIND], kinds=[KIND], options=options) as cluster:
        await add_nodes(cluster, "node-b")
        first = cluster.start()
        for name in ("one", "two", "three", "four", "five"):
            await run(cluster, name)
        await charge(cluster, "one", "two", "three", node="gone")
        await charge(cluster, "four", "five")
        await cluster.until(lambda: taints(cluster) == {FAULTY: [CHARGED_TAINT]})
        await first.stop()
        cluster.start()
        await cluster.advance(400)
        assert taints(cluster) == {FAULTY: [CHARGED_TAINT]}


@pytest.mark.parametrize("name", ["gone", "../namespaces/ml/secrets/key"])
async def test_name_in_a_status_that_no_node_has_is_not_asked_for(name: str) -> None:
    options = Options(taint_charged_nodes=True)
    async with start_cluster(installed=[KIND], kinds=[KIND], options=options) as cluster:
        await add_nodes(cluster, "node-b")
        cluster.start()
        for job in ("one", "two"):
            await run(cluster, job)
        before = gets(cluster)
        await charge(cluster, "one", "two", node=name)
        await cluster.advance(400)
        assert gets(cluster) == before


def gets(cluster: ClusterHarness) -> list[str]:
    """Return the resources of which the controller has asked for an object."""
    audit = cluster.server.audit
    return sorted(one.resource for one in audit if (one.user_agent, one.verb) == ("dlctl", "get"))


async def test_taint_that_an_earlier_leader_left_is_removed() -> None:
    options = Options(taint_charged_nodes=True)
    async with start_cluster(installed=[KIND], kinds=[KIND], options=options) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        left = {"spec": {"taints": [{"key": CHARGED_TAINT, "effect": "NoSchedule"}]}}
        await cluster.user.patch(NODES, ObjectKey("", "node-b"), left)
        cluster.start()
        await cluster.until(lambda: not taints(cluster))


async def test_only_the_pod_on_the_node_makes_way_where_the_policy_says_so() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster)
        cluster.start()
        replicas = ("master-0", "worker-0", "worker-1")
        job = training_job("PyTorchJob", "one", Master=1, Worker=2)
        rules = [{"action": "RestartReplica"}]
        job["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 0, "rules": rules}}
        cluster.node.choose_node = lambda pod: (
            "node-c"
            if pod["metadata"]["name"] == "one-master-0"
            and "host-node-c" not in excluded_hosts(pod)
            else "node-b"
        )
        await cluster.submit(job, {str(r): [KEEPS_RUNNING, KEEPS_RUNNING] for r in replicas})
        await cluster.until(lambda: cluster.phase("one") == "Running")
        before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.objects(PODS)}
        spot = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
        await cluster.user.patch(NODES, ObjectKey("", "node-c"), {"spec": {"taints": [spot]}})
        await cluster.until(lambda: len(cluster.status("one")["dlctl"].get("attempts", ())) == 2)
        await cluster.advance(120)
        after = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.objects(PODS)}
        assert {name for name, uid in after.items() if before[name] != uid} == {"one-master-0"}
        first, second = cluster.status("one")["dlctl"]["attempts"]
        assert (first["cause"], first["replica"]) == ("Preemption", "master-0")
        assert "endTime" not in second
        assert nodes_of(cluster, "one-master") == ["node-b"]
        assert "PyTorchJobNodeDraining" in cluster.events("one")


async def test_gang_makes_way_for_a_node_that_is_about_to_go() -> None:
    options = Options(restart_backoff_s=30)
    async with start_cluster(installed=[KIND], kinds=[KIND], options=options) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        cluster.start()
        job = training_job("PyTorchJob", "one", Master=1, Worker=2)
        job["spec"]["runPolicy"] = {"failurePolicy": {"maxRestarts": 0}}
        script: dict[str, list[Outcome]] = {"worker-0": [KEEPS_RUNNING, KEEPS_RUNNING]}
        await cluster.submit(job, script)
        await cluster.until(lambda: cluster.phase("one") == "Running")
        first = {pod["metadata"]["uid"] for pod in cluster.objects(PODS)}
        graces: dict[str, int] = {}

        def observe(change: StorageEvent) -> None:
            if change.new is not None and change.new.meta.deletion_timestamp:
                grace = change.new.meta.deletion_grace_period_seconds
                graces.setdefault(change.new.uid, grace or 0)

        cluster.server.storage.observers.append(observe)
        spot = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
        noticed = cluster.clock.monotonic()
        await cluster.user.patch(NODES, ObjectKey("", FAULTY), {"spec": {"taints": [spot]}})
        await cluster.until(lambda: first <= set(graces))
        # All at once, with their whole grace period, without waiting for the back-off.
        assert cluster.clock.monotonic() - noticed < 5
        assert {graces[uid] for uid in first} == {30}
        await cluster.until(lambda: cluster.phase("one") == "Running")
        assert nodes_of(cluster, "one") == ["node-b"]
        attempt, *more = cluster.status("one")["dlctl"]["attempts"]
        assert (attempt["cause"], attempt["node"]) == ("Preemption", FAULTY)
        assert len(more) <= 1
        assert "countedRestarts" not in cluster.status("one")["dlctl"]
        assert not cluster.history.violations


async def test_job_without_a_failure_policy_stays_on_a_node_that_is_about_to_go() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        await add_nodes(cluster, FAULTY, "node-b")
        cluster.start()
        await run(cluster, "one", ends=False)
        await cluster.until(lambda: cluster.phase("one") == "Running")
        before = {pod["metadata"]["uid"] for pod in cluster.objects(PODS)}
        spot = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
        await cluster.user.patch(NODES, ObjectKey("", FAULTY), {"spec": {"taints": [spot]}})
        await cluster.settled()
        assert {pod["metadata"]["uid"] for pod in cluster.objects(PODS)} == before


async def test_controller_that_may_not_list_nodes_runs_jobs() -> None:
    async with start_cluster(installed=[KIND], kinds=[KIND]) as cluster:
        refusal = status.forbidden(NODES, "", "nodes are none of your business")
        for verb in ("list", "watch"):
            fault = Fault(
                verb=verb, resource="nodes", user_agent="dlctl", status=refusal, times=None
            )
            cluster.server.faults.add(fault)
        await add_nodes(cluster, FAULTY, "node-b")
        controller = cluster.start()
        await run(cluster, "one")
        assert controller.manager.synced
