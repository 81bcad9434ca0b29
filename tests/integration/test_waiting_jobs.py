"""Jobs whose children cannot be created: they wait if that can help, and report the cause."""

from dlctl.api.meta import PODS
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from tests.builders import mxjob, template, training_job
from tests.integration.mxjobs import JOBS, patch_spec
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import script_of


async def test_job_waits_for_a_taken_name_until_it_is_free(
    start_cluster: StartCluster,
) -> None:
    manifest = mxjob(RuntimeId="abcd")
    name = "linear-worker-abcd-1"
    squatter = {"metadata": {"name": name}, **template()}
    async with start_cluster() as cluster:
        await cluster.user.create(PODS, cluster.namespace, squatter)
        cluster.start()
        await cluster.submit(manifest, {})
        await cluster.until(lambda: name in cluster.condition("Waiting"))
        assert "taken" in cluster.condition("Waiting")

        await cluster.user.delete(PODS, cluster.key(name), grace_period_s=0)
        assert (await cluster.ended())["state"] == "Succeeded"
        assert not cluster.condition("Waiting")


async def test_job_waits_for_an_exceeded_quota_until_there_is_room(
    start_cluster: StartCluster,
) -> None:
    full = status.forbidden(PODS, "linear-worker", "exceeded quota: compute, pods=2")
    fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=full, times=None)
    async with start_cluster() as cluster:
        cluster.server.faults.add(fault)
        cluster.start()
        await cluster.submit(mxjob(), {})
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        await cluster.advance(60)
        assert cluster.history.writes()["create", "pods"] <= 12, "it is tried now and then"

        cluster.server.faults.clear()
        assert (await cluster.ended())["state"] == "Succeeded"
        assert not cluster.condition("Waiting")


async def test_job_in_a_terminating_namespace_is_left_alone(start_cluster: StartCluster) -> None:
    going = status.forbidden(PODS, "linear-worker", "it is being terminated")
    going.details = {"causes": [{"reason": "NamespaceTerminating"}]}
    fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=going, times=None)
    async with start_cluster() as cluster:
        cluster.server.faults.add(fault)
        cluster.start()
        await cluster.submit(mxjob(), {})
        await cluster.until(lambda: cluster.history.writes()["create", "pods"])
        await cluster.advance(60)
        # Changes of its other children enqueue it; by itself it is not requeued. Each attempt
        # creates one pod of each of the three templates.
        assert cluster.history.writes()["create", "pods"] <= 3 * 4
        assert not cluster.condition("Waiting")


async def test_new_job_with_a_rejected_template_fails_permanently_without_children(
    start_cluster: StartCluster,
) -> None:
    broken = mxjob()
    container = broken["spec"]["replicaSpecs"][2]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 123456}]
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(broken, script=script_of(mxjob()))
        said = await cluster.ended(phase="Failed")
        assert said["state"] == "Failed"
        assert "containerPort" in said["reason"]
        assert said["completionTime"]
        await cluster.settled()
        assert "containerPort" in cluster.events()["MXJobInvalid"]
        assert (cluster.pods(), cluster.services()) == ([], [])

        await patch_spec(cluster, {"replicaSpecs": mxjob()["spec"]["replicaSpecs"]})
        await cluster.settled()
        assert (cluster.phase(), cluster.pods()) == ("Failed", [])


async def test_invalid_job_has_one_event_and_no_pods_and_is_deleted_after_its_ttl(
    start_cluster: StartCluster,
) -> None:
    chief = {"replicaName": "WORKER", "replicaIndex": 7}
    invalid = mxjob(terminationPolicy={"chief": chief}, runPolicy={"ttlSecondsAfterFinished": 3600})
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(invalid, script=script_of(mxjob()))
        said = await cluster.ended(phase="Failed")
        assert "spec.terminationPolicy.chief.replicaIndex" in said["reason"]
        assert "the job has 2 WORKER replicas" in said["reason"]
        await cluster.settled()
        told = {("patch", "mxjobs/status.kubeflow.org"): 1, ("create", "events"): 1}
        assert cluster.history.writes() == told
        assert not cluster.pods()

        await patch_spec(cluster, {"terminationPolicy": None})
        await cluster.settled()
        assert (cluster.phase(), cluster.pods()) == ("Failed", [])
        await patch_spec(cluster, {"runPolicy": {"ttlSecondsAfterFinished": 1}})
        await cluster.until(lambda: not cluster.objects(JOBS))


async def test_invalid_job_does_not_stop_other_jobs(start_cluster: StartCluster) -> None:
    second = {"chief": {"replicaName": "WORKER", "replicaIndex": 1}}
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(mxjob(name="broken", workers=1, terminationPolicy=second), script=None)
        await cluster.submit(mxjob(), {})
        assert (await cluster.ended())["state"] == "Succeeded"
        assert cluster.status("broken")["phase"] == "Failed"


async def test_conflicting_deletion_is_retried(start_cluster: StartCluster) -> None:
    conflict = status.conflict(PODS, "linear-worker", "the object has been modified")
    fault = Fault(verb="delete", resource="pods", user_agent="dlctl", status=conflict, times=6)
    async with start_cluster() as cluster:
        cluster.server.faults.add(fault)
        cluster.start()
        await cluster.submit(mxjob(), {})
        assert (await cluster.ended())["state"] == "Succeeded"
        await cluster.settled()
        assert not cluster.pods()


async def test_job_whose_pods_cannot_be_recreated_is_not_running(
    start_cluster: StartCluster,
) -> None:
    full = status.forbidden(PODS, "linear-worker", "exceeded quota: compute, pods=2")
    fault = Fault(verb="create", resource="pods", user_agent="dlctl", status=full, times=None)
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=1))
        await cluster.until(lambda: cluster.condition("Running"))
        await cluster.settled()
        # A non-deciding replica is replaced, and the job stays Running.
        await cluster.user.delete(PODS, cluster.key("linear-worker-0"))
        await cluster.settled()
        assert cluster.condition("Running")
        assert not cluster.condition("Restarting")

        cluster.server.faults.add(fault)
        before = status_writes(cluster)
        for name in cluster.pods():
            await cluster.user.delete(PODS, cluster.key(name))
        await cluster.until(lambda: cluster.condition("Restarting"))
        await cluster.advance(300)
        assert not cluster.condition("Running")
        assert cluster.condition("Restarting")
        # For the reason, and for the counts of both types.
        assert status_writes(cluster) - before <= 3

        cluster.server.faults.clear()
        await cluster.until(lambda: cluster.condition("Running"))
        assert not cluster.condition("Restarting")


def status_writes(cluster: ClusterHarness) -> int:
    return sum(
        count
        for entry, count in cluster.server.audit.items()
        if entry.user_agent.startswith("dlctl") and entry.resource == "pytorchjobs/status"
    )
