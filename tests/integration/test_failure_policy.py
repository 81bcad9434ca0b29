"""Jobs with a failure policy: what restarts, what fails them, and the labels of each attempt."""

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey
from dlctl.api.objects.nodes import NODES
from dlctl.local.apiserver.faults import Fault
from dlctl.options import Options
from tests.builders import bare_job, kind_of
from tests.integration.kubeflow import (
    Outcomes,
    change,
    conditions,
    job_of,
    only,
    phases,
    running,
)
from tests.integration.quick_deletions import finish_and_delete_at_once
from tests.integration.replicas import created
from tests.support.fake_kubelet import NODE_NAME
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Evicted, Exit, Outcome

FAST = Options(restart_backoff_s=1.0, restart_backoff_cap_s=2.0)
ATTEMPT_LABEL = "dlctl.dev/restart-attempt"
ANNOTATION = "dlctl.dev/failure-policy"
BARE_LISTS = kind_of("mpba.fbk.eu/v1", "MXJob").resource


def pytorch_job(*rules: JSON, **policy: object) -> JSON:
    counts = {"Master": 1, "Worker": 2}
    return job_of(
        "PyTorchJob", counts, run_policy={"failurePolicy": {"rules": list(rules), **policy}}
    )


def last_worker(*outcomes: Outcome) -> Outcomes:
    """Return outcomes of worker 1; the others run until they are stopped."""
    return {"worker-1": outcomes, "worker-0": (KEEPS_RUNNING,), "master-0": (KEEPS_RUNNING,)}


def attempts(cluster: ClusterHarness) -> set[str]:
    """Return the attempts that the present pods belong to."""
    return {pod["metadata"]["labels"][ATTEMPT_LABEL] for pod in cluster.objects(PODS)}


def state(cluster: ClusterHarness) -> JSON:
    own: JSON = cluster.status().get("dlctl", {})
    return own


async def test_job_restarts_as_a_whole_and_succeeds(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        outcomes: Outcomes = last_worker(Exit(3), DONE)
        await cluster.submit(pytorch_job(maxRestarts=1), outcomes)
        await cluster.until(lambda: cluster.phase() == "Restarting")
        await cluster.until(lambda: cluster.phase() == "Running")
        assert attempts(cluster) == {"1"}
        assert (state(cluster)["jobRestarts"], state(cluster)["countedRestarts"]) == (1, 1)
        first = state(cluster)["attempts"][0]
        assert (first["replica"], first["exitCode"]) == ("worker-1", 3)


@pytest.mark.embedded_only("it slows down the server")
@pytest.mark.parametrize("action", ["RestartReplica", "RestartJob"])
async def test_failure_is_decided_about_though_its_pod_is_gone_before_a_slow_reconcile(
    action: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        rule = {"action": action, "targetReplicas": ["Worker"]}
        outcomes = {**last_worker(KEEPS_RUNNING), "worker-0": (KEEPS_RUNNING, KEEPS_RUNNING)}
        await cluster.submit(pytorch_job(rule, maxRestarts=1), outcomes)
        await running(cluster)
        await cluster.settled()
        cluster.server.faults.add(
            Fault(verb="patch", resource="pytorchjobs.kubeflow.org", delay_s=1)
        )
        await finish_and_delete_at_once(cluster, "worker-1")
        await cluster.advance(0.5)
        await finish_and_delete_at_once(cluster, "worker-0", 3)
        await cluster.until(lambda: created(cluster, "worker-0") == 2)
        await cluster.settled()
        first = state(cluster)["attempts"][0]
        assert (first["replica"], first["exitCode"]) == ("worker-0", 3)
        assert state(cluster)["countedRestarts"] == 1
        assert created(cluster, "worker-0") == 2
        assert cluster.phase() == "Running"


async def test_pods_tell_their_program_the_attempt(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        await cluster.submit(pytorch_job(maxRestarts=1), {"worker-1": [Exit(3), KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.pods() and attempts(cluster) == {"1"})
        for pod in cluster.objects(PODS):
            env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
            assert env["DLCTL_RESTART_ATTEMPT"] == "1"
            assert env["PET_RDZV_ID"] == "linear-1"
            assert env["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "25"
            assert pod["metadata"]["annotations"][ATTEMPT_LABEL] == "1"
            assert pod["spec"]["restartPolicy"] == "Never"


async def test_used_up_restarts_fail_the_job_with_the_cause(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        outcomes: Outcomes = last_worker(Exit(3), Exit(4))
        await cluster.submit(pytorch_job(maxRestarts=1), outcomes, last_replica="worker-1")
        await cluster.ended()
        assert conditions(cluster)[-1] == ("Failed", "True", "ReachedMaxRestarts")
        message = cluster.condition("Failed")
        assert message.startswith("Job linear has failed because it has reached maxRestarts, 1")
        assert "worker-1" in message
        assert "exit code 4" in message


async def test_rule_fails_the_job_by_exit_code(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
        outcomes: Outcomes = last_worker(Exit(42))
        job = pytorch_job(rule, maxRestarts=5)
        await cluster.submit(job, outcomes, last_replica="worker-1")
        await cluster.ended()
        assert conditions(cluster)[-1] == ("Failed", "True", "FailJobAction")
        assert "exit code 42" in cluster.condition("Failed")
        assert "jobRestarts" not in state(cluster)


async def test_rule_restarts_a_single_replica(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        rule = {"action": "RestartReplica", "targetReplicas": ["Worker"]}
        outcomes: Outcomes = last_worker(Exit(3), KEEPS_RUNNING)
        await cluster.submit(pytorch_job(rule, maxRestarts=1), outcomes)
        await cluster.until(lambda: state(cluster).get("countedRestarts") == 1)
        uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.objects(PODS)}
        await cluster.until(lambda: len(state(cluster)["attempts"]) == 2)
        later = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.objects(PODS)}
        assert {name for name in later if later[name] != uids.get(name)} == {"linear-worker-1"}
        assert attempts(cluster) == {"0"}


async def test_replica_that_completes_before_a_failure_is_decided_is_not_recreated(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        rule = {"action": "RestartReplica", "targetReplicas": ["Worker"]}
        outcomes: Outcomes = last_worker(Exit(1), KEEPS_RUNNING)
        await cluster.submit(pytorch_job(rule, maxRestarts=1), outcomes)
        await cluster.until(lambda: "Failed" in phases(cluster))
        # The decision waits for a better proof of why it has failed.
        await cluster.advance(0.5)
        assert "countedRestarts" not in state(cluster)
        await finish_and_delete_at_once(cluster, "worker-0")
        await cluster.until(lambda: created(cluster, "worker-1") == 2)
        await cluster.settled()
        assert created(cluster, "worker-0") == 1
        assert state(cluster)["completedIndexes"] == {"Worker": "0"}


@pytest.mark.parametrize("count", [1, 3])
async def test_causes_that_are_not_the_users_do_not_count(
    count: int, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        evictions = [Evicted()] * count
        outcomes: Outcomes = last_worker(*evictions, KEEPS_RUNNING)
        await cluster.submit(pytorch_job(maxRestarts=0), outcomes)
        await cluster.until(lambda: cluster.pods() and attempts(cluster) == {str(count)})
        await cluster.until(lambda: cluster.phase() == "Running")
        assert "countedRestarts" not in state(cluster)


async def test_restarts_that_are_not_the_users_are_capped(start_cluster: StartCluster) -> None:
    options = Options(
        restart_backoff_s=1.0, restart_backoff_cap_s=2.0, max_infrastructure_restarts_per_hour=1
    )
    async with start_cluster(kinds=only("PyTorchJob"), options=options) as cluster:
        cluster.start()
        outcomes: Outcomes = {"worker-1": [Evicted(), Evicted(), KEEPS_RUNNING]}
        await cluster.submit(pytorch_job(), outcomes)
        await cluster.until(lambda: state(cluster).get("jobRestarts") == 2)
        assert "; not before " in cluster.condition("Restarting")
        await cluster.until(lambda: not cluster.pods() or attempts(cluster) == {"1"})
        assert cluster.phase() == "Restarting"


async def test_deadline_ends_a_job_that_waits_for_its_restart(start_cluster: StartCluster) -> None:
    slow = Options(restart_backoff_s=200.0)
    async with start_cluster(kinds=only("PyTorchJob"), options=slow) as cluster:
        cluster.start()
        job = pytorch_job(maxRestarts=1)
        job["spec"]["runPolicy"] |= {"activeDeadlineSeconds": 20, "cleanPodPolicy": "All"}
        await cluster.submit(job, {"worker-1": [Exit(3), DONE]})
        await cluster.ended()
        assert "active longer than specified deadline" in cluster.condition("Failed")
        await cluster.until(lambda: not cluster.pods())


@pytest.mark.embedded_only("it taints the only node")
async def test_whole_job_leaves_a_draining_node(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.start()
        await cluster.user.create(NODES, "", {"metadata": {"name": NODE_NAME}})
        running = last_worker(KEEPS_RUNNING)
        await cluster.submit(pytorch_job(), running)
        await cluster.until(lambda: cluster.phase() == "Running")
        taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
        body = {"spec": {"taints": taints}}
        await cluster.user.patch(NODES, ObjectKey("", NODE_NAME), body)
        await cluster.until(lambda: state(cluster).get("jobRestarts") == 1)
        await cluster.until(lambda: cluster.pods() and attempts(cluster) == {"1"})
        assert state(cluster)["attempts"][0]["cause"] == "ScaleDown"
        assert "countedRestarts" not in state(cluster)


def bare_list(policy: str, workers: int = 2) -> JSON:
    """Return a job of dl-operator's form, which has the policy in an annotation."""
    job = bare_job(scheduler=1, worker=workers)
    job["metadata"]["annotations"] = {ANNOTATION: policy}
    return job


async def test_job_without_a_run_policy_has_it_in_an_annotation(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(options=FAST) as cluster:
        cluster.start()
        outcomes: Outcomes = {"worker-1": [Exit(3), KEEPS_RUNNING], "scheduler-0": [KEEPS_RUNNING]}
        await cluster.submit(bare_list('{"maxRestarts": 1}'), outcomes)
        await cluster.until(lambda: cluster.pods() and attempts(cluster) == {"1"})
        await cluster.until(lambda: cluster.phase() == "Running")
        status = cluster.status()
        assert (status["jobRestarts"], status["countedRestarts"]) == (1, 1)
        assert status["attempts"][0]["replica"] == "worker-1"


async def test_invalid_annotation_fails_a_new_job(start_cluster: StartCluster) -> None:
    async with start_cluster(options=FAST) as cluster:
        cluster.start()
        await cluster.submit(bare_list("maxRestarts: 1"), script=None)
        await cluster.until(lambda: cluster.phase() == "Failed")
        assert f"metadata.annotations[{ANNOTATION}]: is not JSON" in cluster.condition("Failed")
        assert not cluster.pods()


async def test_failure_waits_while_the_annotation_is_invalid(start_cluster: StartCluster) -> None:
    async with start_cluster(options=FAST) as cluster:
        cluster.start()
        outcomes: Outcomes = {"worker-0": [KEEPS_RUNNING] * 2, "scheduler-0": [KEEPS_RUNNING]}
        await cluster.submit(bare_list('{"maxRestarts": 1}', workers=1), outcomes)
        await cluster.until(lambda: cluster.phase() == "Running")
        await annotate(cluster, "oops")
        await cluster.until(lambda: "is not JSON" in cluster.condition("Waiting"))
        (pod,) = (p for p in cluster.objects(PODS) if "worker" in p["metadata"]["name"])
        await cluster.node.finish(pod["metadata"]["uid"], 3)
        await cluster.settled()
        assert cluster.phase() == "Running"
        await annotate(cluster, '{"maxRestarts": 1}')
        await cluster.until(lambda: cluster.status().get("jobRestarts") == 1)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
async def test_job_succeeds_while_the_annotation_is_invalid(
    is_restarted: bool, start_cluster: StartCluster
) -> None:
    async with start_cluster(options=FAST) as cluster:
        controller = cluster.start()
        outcomes: Outcomes = {"worker-0": [KEEPS_RUNNING], "scheduler-0": [KEEPS_RUNNING]}
        await cluster.submit(bare_list('{"maxRestarts": 1}', workers=1), outcomes)
        await cluster.until(lambda: cluster.phase() == "Running")
        await annotate(cluster, "oops")
        await cluster.until(lambda: "is not JSON" in cluster.condition("Waiting"))
        if is_restarted:
            await controller.kill()
            cluster.start()
        for pod in cluster.objects(PODS):
            await cluster.node.finish(pod["metadata"]["uid"])
        await cluster.ended()
        assert (cluster.phase(), cluster.status()["state"]) == ("Done", "Succeeded")


async def annotate(cluster: ClusterHarness, policy: str) -> None:
    body = {"metadata": {"annotations": {ANNOTATION: policy}}}
    await cluster.user.patch(BARE_LISTS, cluster.key("linear"), body)


async def test_scale_down_and_up_within_the_grace_period_restarts_nothing(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob"), options=FAST) as cluster:
        cluster.require_embedded("its pods take a while to stop")
        controller = cluster.start()
        await cluster.submit(pytorch_job(maxRestarts=0), last_worker(KEEPS_RUNNING, KEEPS_RUNNING))
        await running(cluster)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.objects(PODS)}
        cluster.node.run_s = 5.0
        await scale_workers(cluster, 1)
        await cluster.until(lambda: leaving(cluster) == ["linear-worker-1"])
        await controller.kill()
        await scale_workers(cluster, 2)
        cluster.start()
        await cluster.advance(2.0)
        assert leaving(cluster) == ["linear-worker-1"]
        await cluster.until(lambda: len(cluster.pods()) == 3 and not leaving(cluster))
        await running(cluster)
        await cluster.settled()
        after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.objects(PODS)}
        assert {name for name in after if after[name] != before[name]} == {"linear-worker-1"}
        assert not {"attempts", "jobRestarts", "scaledDownIndexes"} & state(cluster).keys()


async def scale_workers(cluster: ClusterHarness, count: int) -> None:
    worker = job_of("PyTorchJob", {"Worker": count})["spec"]["pytorchReplicaSpecs"]["Worker"]
    await change(cluster, "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": worker}})


def leaving(cluster: ClusterHarness) -> list[str]:
    found = (pod["metadata"] for pod in cluster.objects(PODS))
    return [metadata["name"] for metadata in found if "deletionTimestamp" in metadata]
