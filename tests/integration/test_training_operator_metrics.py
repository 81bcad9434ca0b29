"""The metrics of training-operator's dashboards: everything counts once."""

from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import bare_job, kind_of, mxjob
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import DONE, KEEPS_RUNNING, Evicted, Exit, Outcome, script_of
from tests.support.running_controller import RunningController

JOBS = kind_of().resource
FOREVER: dict[str, list[Outcome]] = {
    "scheduler-0": [KEEPS_RUNNING],
    "server-0": [KEEPS_RUNNING],
    "worker-0": [KEEPS_RUNNING],
}


def counted(*controllers: RunningController) -> dict[str, float]:
    """Return all counts, and check their labels."""
    found: dict[str, float] = {}
    for controller in controllers:
        for family in controller.manager.metrics.registry.collect():
            if not family.name.startswith("training_operator_jobs_"):
                continue
            name = family.name.removeprefix("training_operator_jobs_")
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    labels = {"job_namespace": controller.namespace, "framework": "mxnet"}
                    assert sample.labels == labels
                    found[name] = found.get(name, 0) + sample.value
    return found


def refuse_status_writes(cluster: ClusterHarness, times: int) -> None:
    conflict = status.conflict(JOBS, cluster.key().name, "somebody else was faster")
    for verb in ("patch", "update"):
        cluster.server.faults.add(
            Fault(
                verb=verb,
                resource=JOBS.group_resource,
                subresource="status",
                user_agent="dlctl",
                status=conflict,
                times=times,
            )
        )


async def test_succeeded_and_deleted_job_counts_once_in_each_metric(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(mxjob(cleanupPodPolicy="None"), {})
        await cluster.ended()
        await cluster.settled()
        assert counted(controller) == {"created": 1, "successful": 1}
        await cluster.user.delete(JOBS, cluster.key())
        await cluster.until(lambda: counted(controller).get("deleted"))
        assert counted(controller) == {"created": 1, "successful": 1, "deleted": 1}


async def test_restarts_count_once_each(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        manifest = mxjob()
        for entry in manifest["spec"]["replicaSpecs"]:
            entry["template"]["spec"]["restartPolicy"] = "Never"
        await cluster.submit(manifest, {"worker-0": [Exit(137), Evicted(), DONE]})
        await cluster.ended()
        await cluster.settled()
        assert counted(controller) == {"created": 1, "restarted": 2, "successful": 1}


async def test_permanent_exit_code_is_a_failure_and_no_restart(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(mxjob(workers=1), {**FOREVER, "worker-0": [Exit(1)]})
        assert (await cluster.ended())["state"] == "Failed"
        await cluster.settled()
        assert counted(controller) == {"created": 1, "failed": 1}


async def test_deadline_and_backoff_limit_are_failures(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        late = mxjob(name="late", workers=1, runPolicy={"activeDeadlineSeconds": 2})
        await cluster.submit(late, FOREVER)
        assert (await cluster.ended("late"))["state"] == "Failed"
        often = mxjob(name="often", workers=1, runPolicy={"backoffLimit": 0})
        await cluster.submit(often, {**FOREVER, "worker-0": [Exit(137), DONE]})
        assert (await cluster.ended("often"))["state"] == "Failed"
        await cluster.settled()
        assert counted(controller) == {"created": 2, "failed": 2}


async def test_invalid_job_is_a_failure(start_cluster: StartCluster) -> None:
    chief = {"replicaName": "WORKER", "replicaIndex": 9}
    async with start_cluster() as cluster:
        controller = cluster.start()
        invalid = mxjob(terminationPolicy={"chief": chief})
        await cluster.submit(invalid, script=script_of(mxjob()))
        await cluster.settled()
        assert counted(controller) == {"created": 1, "failed": 1}
        mended = {"spec": {"terminationPolicy": {"chief": {**chief, "replicaIndex": 0}}}}
        await cluster.user.patch(JOBS, cluster.key(), mended)
        await cluster.settled()
        assert counted(controller) == {"created": 1, "failed": 1}


async def test_failed_status_write_counts_once_it_succeeds(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        refuse_status_writes(cluster, times=2)
        await cluster.submit(mxjob(workers=1), FOREVER)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        refuse_status_writes(cluster, times=2)
        patch = {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}}
        await cluster.user.patch(JOBS, cluster.key(), patch)
        await cluster.ended()
        await cluster.settled()
        assert counted(controller) == {"created": 1, "failed": 1}


async def test_restarted_controller_counts_nothing_again(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        first = cluster.start()
        await cluster.submit(mxjob(name="over", cleanupPodPolicy="None"), {})
        await cluster.ended("over")
        await cluster.submit(mxjob(workers=1), FOREVER)
        await cluster.until(lambda: cluster.status().get("phase") == "Running")
        await first.kill()
        second = cluster.start()
        await cluster.settled()
        assert counted(first) == {"created": 2, "successful": 1}
        assert counted(second) == {}
        for name in ("over", "linear"):
            await cluster.user.delete(JOBS, cluster.key(name))
        await cluster.until(lambda: counted(second).get("deleted") == 2)
        assert counted(second) == {"deleted": 2}


async def test_jobs_of_other_groups_do_not_count(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        controller = cluster.start()
        await cluster.submit(bare_job(), {})
        await cluster.ended()
        await cluster.settled()
        assert counted(controller) == {}
