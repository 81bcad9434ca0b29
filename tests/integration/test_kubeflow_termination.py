"""When jobs of Kubeflow's kinds end, and which pod terminations do not end them."""

from functools import partial

import pytest

from dlctl.api.meta import PODS
from tests.builders import training_job
from tests.integration.kubeflow import (
    KINDS,
    Outcomes,
    change,
    chief_of,
    conditions,
    failed_reason,
    forever,
    job_of,
    only,
    phases,
    replica_specs,
    running,
)
from tests.integration.replicas import created, replicas
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import (
    DONE,
    KEEPS_RUNNING,
    OOM_KILLED,
    Deleted,
    Drained,
    Evicted,
    Exit,
    Outcome,
)


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
@pytest.mark.parametrize("kind", KINDS)
async def test_job_survives_deleted_drained_and_evicted_pods(
    kind: str, policy: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        outcomes: Outcomes = {
            "worker-0": [Deleted(), DONE],
            "worker-1": [Drained(), DONE],
            "worker-2": [Evicted(), DONE],
        }
        await cluster.submit(job_of(kind, policy=policy), outcomes)
        await cluster.ended()
        assert cluster.condition("Succeeded")
        assert [created(cluster, f"worker-{index}") for index in range(3)] == [2, 2, 2]
        assert not cluster.history.violations


@pytest.mark.parametrize("kind", KINDS)
async def test_deleted_pods_do_not_fail_a_job_that_is_never_restarted(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        outcomes: Outcomes = {"worker-0": [Deleted(), DONE], "worker-1": [Drained(), DONE]}
        await cluster.submit(job_of(kind, policy="Never"), outcomes)
        await cluster.ended()
        assert cluster.condition("Succeeded")
        assert [created(cluster, f"worker-{index}") for index in range(3)] == [2, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
async def test_evicted_pod_fails_a_job_that_is_never_restarted(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        outcomes = {"worker-1": [Evicted()], **forever("worker-0"), **forever()}
        await cluster.submit(job_of(kind, policy="Never"), outcomes, last_replica="worker-1")
        ended = await cluster.ended()
        assert conditions(cluster)[-1] == ("Failed", "True", failed_reason(kind))
        assert "1 Worker replica(s) failed" in cluster.condition("Failed")
        assert ended["completionTime"]
        if kind != "MPIJob":
            # Workers are not counted once the launcher has ended.
            assert ended["replicaStatuses"]["Worker"]["failed"] == 1
        assert created(cluster, "worker-1") == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_replica_with_restart_policy_always_is_restarted_after_every_exit(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        job = job_of(kind, {"Worker": 1, **chief_of(kind)}, policy="Always")
        ends: list[Outcome] = [Exit(1), DONE, OOM_KILLED, Evicted(), Deleted(), KEEPS_RUNNING]
        await cluster.submit(job, {**forever(), "worker-0": ends})
        await cluster.until(lambda: created(cluster, "worker-0") == 3)
        await cluster.settled()
        assert conditions(cluster)[0][0] == "Created"
        assert not cluster.condition("Failed")
        assert not cluster.condition("Succeeded")
        assert len(cluster.pods()) == len(replica_specs(job))


async def test_success_of_the_master_stands_whatever_workers_do_afterwards(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, policy="Never")
        await cluster.submit(job, {"worker-0": [KEEPS_RUNNING]})
        await cluster.ended()
        await cluster.user.delete(PODS, cluster.key("linear-worker-0"))
        await cluster.settled()
        assert conditions(cluster)[-1] == ("Succeeded", "True", "PyTorchJobSucceeded")
        assert created(cluster, "worker-0") == 1


@pytest.mark.parametrize(
    ("kind", "chief"),
    [
        ("TFJob", "Chief"),
        ("PyTorchJob", "Master"),
        ("XGBoostJob", "Master"),
        ("MXJob", "Scheduler"),
    ],
)
async def test_success_of_the_chief_beats_a_simultaneous_failure(
    kind: str, chief: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        controller = cluster.start()
        job = job_of(kind, {"Worker": 1, chief: 1}, policy="Never")
        await cluster.submit(job, forever("worker-0", f"{chief.lower()}-0"))
        await cluster.until(lambda: phases(cluster) == ["Running"] * 2)
        await running(cluster)
        await controller.kill()
        for pod in cluster.objects(PODS):
            is_worker = pod["metadata"]["name"] == "linear-worker-0"
            await cluster.node.finish(pod["metadata"]["uid"], 1 if is_worker else 0)
        await cluster.until(lambda: sorted(phases(cluster)) == ["Failed", "Succeeded"])
        cluster.start()
        await cluster.ended()
        assert cluster.condition("Succeeded")
        assert not cluster.condition("Failed")


async def test_success_policy_all_workers_waits_for_all(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.start()
        job = job_of("TFJob", {"Worker": 2})
        job["spec"]["successPolicy"] = "AllWorkers"
        await cluster.submit(job, {"worker-1": [KEEPS_RUNNING]})
        await cluster.until(lambda: succeeded(cluster) == 1)
        await cluster.settled()
        assert not cluster.condition("Succeeded")
        last = next(p for p in cluster.objects(PODS) if p["metadata"]["name"].endswith("-1"))
        await cluster.node.finish(last["metadata"]["uid"])
        await cluster.ended()
        assert cluster.condition("Succeeded") == f"TFJob {cluster.key()} successfully completed."


def succeeded(cluster: ClusterHarness) -> int:
    workers = (cluster.status().get("replicaStatuses") or {}).get("Worker") or {}
    return int(workers.get("succeeded", 0))


async def test_dynamic_workers_do_not_fail_the_job(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.start()
        job = job_of("TFJob", {"PS": 1, "Worker": 2}, policy="Never")
        job["spec"]["enableDynamicWorker"] = True
        await cluster.submit(job, {"worker-1": [Exit(1)]})
        await cluster.ended()
        assert cluster.condition("Succeeded")
        assert cluster.status()["replicaStatuses"]["Worker"]["failed"] == 1


async def test_elastic_job_succeeds_with_one_of_its_workers(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Worker": 3})
        job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
        outcomes = forever("worker-0", "worker-1")
        await cluster.submit(job, outcomes, last_replica="worker-2")
        await cluster.ended()
        assert (
            cluster.condition("Succeeded") == f"PyTorchJob {cluster.key()} successfully completed."
        )
        # Replicas that still run count as succeeded.
        assert cluster.status()["replicaStatuses"]["Worker"]["succeeded"] == 3


async def test_tuning_job_ends_with_its_tuner(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("MXJob")) as cluster:
        cluster.start()
        job = job_of("MXJob", {"TunerTracker": 1, "TunerServer": 2, "Tuner": 1})
        job["spec"]["jobMode"] = "MXTune"
        members = ("tunertracker-0", "tunerserver-0", "tunerserver-1", "tuner-0")
        await cluster.submit(job, forever(*members))
        await cluster.until(lambda: cluster.condition("Running"))
        [tuner] = (p for p in cluster.objects(PODS) if p["metadata"]["name"] == "linear-tuner-0")
        await cluster.node.finish(tuner["metadata"]["uid"])
        await cluster.ended()
        assert [c[0] for c in conditions(cluster)] == ["Created", "Running", "Succeeded"]


async def test_permanent_exit_code_is_final_and_a_signal_is_not(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("XGBoostJob")) as cluster:
        cluster.start()
        job = job_of("XGBoostJob", {"Master": 1, "Worker": 1}, policy="ExitCode")
        outcomes: Outcomes = {"worker-0": [Exit(200), Exit(3)], **forever("master-0")}
        await cluster.submit(job, outcomes, last_replica="worker-0")
        ended = await cluster.ended()
        assert created(cluster, "worker-0") == 2
        assert ended["dlctl"]["failure"]["exitCode"] == 3
        assert ended["completionTime"]


async def test_restarting_is_reported_until_the_job_runs_again(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, policy="ExitCode")
        await cluster.submit(job, forever("master-0", "worker-0"))
        await cluster.until(lambda: phases(cluster) == ["Running"] * 2)
        await running(cluster)
        # The new pod does not start before the test has looked.
        cluster.node.has_room.clear()
        [master] = (p for p in cluster.objects(PODS) if p["metadata"]["name"] == "linear-master-0")
        await cluster.node.finish(master["metadata"]["uid"], 137)
        await cluster.until(lambda: bool(cluster.condition("Restarting")))
        assert cluster.condition("Restarting") == (
            "job linear is restarting because Master replica(s) failed."
        )
        assert conditions(cluster)[-1] == ("Restarting", "True", "PyTorchJobRestarting")
        cluster.node.has_room.set()
        await running(cluster)
        assert [c[0] for c in conditions(cluster)] == ["Created", "Running"]


def has_pods(cluster: ClusterHarness, count: int) -> bool:
    return len(cluster.pods()) == count


def workers_of(cluster: ClusterHarness) -> dict[str, object]:
    return dict(cluster.status().get("replicaStatuses", {}).get("Worker", {}))


@pytest.mark.parametrize("kind", ["PyTorchJob", "PaddleJob", "JAXJob"])
async def test_workers_are_added_and_removed_as_the_job_is_scaled(
    kind: str, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        await cluster.submit(job_of(kind, {"Worker": 1}), forever("worker-0"))
        await running(cluster)
        for count in (3, 2):
            await change(cluster, kind, {"replicas": count}, subresource="scale")
            await cluster.until(partial(has_pods, cluster, count))
            await cluster.settled()
            assert len(cluster.services()) == count
        assert replicas(cluster.pods()) == ["worker-0", "worker-1"]
        workers = cluster.status()["replicaStatuses"]["Worker"]
        assert workers["active"] == 2
        name = f"{kind.lower()}-controller"
        assert f"training.kubeflow.org/operator-name={name}" in workers["selector"]
        assert cluster.condition("Running")


async def test_running_job_that_gets_a_master_stays_running(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Worker": 1}), forever("worker-0", "master-0"))
        await running(cluster)
        await cluster.advance(60)
        since = cluster.status()["conditions"][-1]["lastTransitionTime"]
        specs = replica_specs(job_of("PyTorchJob", {"Master": 1}))
        await change(cluster, "PyTorchJob", {"pytorchReplicaSpecs": specs})
        statuses = "replicaStatuses"
        await cluster.until(lambda: cluster.status()[statuses].get("Master", {}).get("active"))
        assert cluster.condition("Running")
        assert cluster.status()["conditions"][-1]["lastTransitionTime"] == since


async def test_completed_worker_that_is_removed_and_added_again_runs_again(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("TFJob")) as cluster:
        cluster.start()
        outcomes: Outcomes = {"worker-2": [DONE, KEEPS_RUNNING], **forever("worker-0", "worker-1")}
        await cluster.submit(job_of("TFJob", policy="Never"), outcomes | forever())
        await cluster.until(lambda: workers_of(cluster).get("succeeded") == 1)
        for count in (2, 3):
            await change(cluster, "TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": count}}})
            await cluster.settled()
        assert created(cluster, "worker-2") == 2
        assert workers_of(cluster) == {"active": 3}


@pytest.mark.parametrize("kind", ["TFJob", "JAXJob", "PaddleJob"])
async def test_job_without_replicas_succeeds(kind: str, start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        await cluster.submit(training_job(kind, Worker=0))
        await cluster.ended()
        assert [c["type"] for c in cluster.status()["conditions"]] == ["Created", "Succeeded"]


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("TFJob", {"Chief": 0, "Worker": 1}),
        ("TFJob", {"PS": 1, "Worker": 0}),
        ("PaddleJob", {"Master": 0, "Worker": 1}),
        ("MXJob", {"Scheduler": 0, "Server": 1, "Worker": 1}),
    ],
)
async def test_job_without_replicas_of_the_type_that_decides_succeeds(
    kind: str, counts: dict[str, int], start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        cluster.start()
        await cluster.submit(training_job(kind, **counts))
        await cluster.ended()
        assert [c["type"] for c in cluster.status()["conditions"]] == ["Created", "Succeeded"]


async def test_running_job_that_is_scaled_to_nothing_goes_on(start_cluster: StartCluster) -> None:
    async with start_cluster(kinds=only("JAXJob")) as cluster:
        cluster.start()
        await cluster.submit(training_job("JAXJob", Worker=1), {"worker-0": [KEEPS_RUNNING]})
        await cluster.until(lambda: cluster.phase() == "Running")
        await change(cluster, "JAXJob", {"replicas": 0}, subresource="scale")
        await cluster.until(lambda: not cluster.pods())
        await cluster.settled()
        assert not cluster.condition("Succeeded")
