"""Children that the API server rejects: the job waits, and others continue."""

from datetime import datetime
from functools import partial

import pytest

from dlctl.api.meta import CONFIG_MAPS, PODS, SERVICES, Resource
from dlctl.kube.flowcontrol.write_limiter import WriteLimiter
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.status import StatusError
from dlctl.reconcilers.planning import next_changes
from dlctl.reconcilers.planning.slices import first_slice
from tests.builders import mxjob, training_job
from tests.integration.kubeflow import change, forever, job_of, only, running
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.outcomes import KEEPS_RUNNING

POLICY = (
    "pods \"linear-worker-0\" is forbidden: ValidatingAdmissionPolicy 'owners' with binding "
    "'owners' denied request: no owner"
)
MUTATION = (
    "policy 'pools' with binding 'pools' denied request: error applying patch: invalid "
    "ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.tolerations"
)
WEBHOOK = 'admission webhook "v.example.com" denied the request: '
ANSWERS = [
    pytest.param(status.bad_request("Pod in version v1 cannot be handled as a Pod"), id="400"),
    pytest.param(
        StatusError(500, "InternalError", 'failed calling webhook "v": no endpoints'), id="500"
    ),
    pytest.param(StatusError(422, "Invalid", POLICY), id="a policy's 422"),
    pytest.param(StatusError(403, "Invalid", MUTATION), id="a mutating policy's 403"),
    pytest.param(StatusError(422, "Invalid", WEBHOOK + "it is invalid"), id="a webhook's 422"),
    pytest.param(StatusError(409, "Conflict", WEBHOOK + "it conflicts"), id="a webhook's 409"),
    pytest.param(StatusError(401, "Unauthorized", WEBHOOK + "who?"), id="a webhook's 401"),
    pytest.param(StatusError(405, "MethodNotAllowed", "create is not supported"), id="405"),
    pytest.param(StatusError(500, "", "etcdserver: request is too large"), id="too large"),
]
# The programs of a large job.
MANY = forever("master-0", *(f"worker-{index}" for index in range(200)))


def refuse(
    cluster: ClusterHarness, resource: Resource, answer: StatusError, *, times: int | None = None
) -> None:
    plural = resource.plural
    fault = Fault(verb="create", resource=plural, user_agent="dlctl", status=answer, times=times)
    cluster.server.faults.add(fault)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", ["PyTorchJob", "MXJob"])
async def test_job_whose_pods_are_rejected_waits(
    kind: str, answer: StatusError, start_cluster: StartCluster
) -> None:
    async with start_cluster(kinds=only(kind)) as cluster:
        refuse(cluster, PODS, answer)
        cluster.start()
        counts = {"Master": 1} if kind == "PyTorchJob" else {"Scheduler": 1}
        await cluster.submit(job_of(kind, counts), {})
        await cluster.until(lambda: answer.message in cluster.condition("Waiting"))
        await cluster.advance(60)
        await cluster.until(lambda: answer.message in cluster.events().get("FailedCreatePod", ""))
        assert cluster.history.writes()["create", "pods"] <= 8, "it is tried now and then"
        assert not cluster.condition("Failed")

        cluster.server.faults.clear()
        await cluster.until(lambda: cluster.condition("Succeeded"))
        assert not cluster.condition("Waiting")


async def assert_few_writes(cluster: ClusterHarness, reason: str, *, statuses: int) -> None:
    cluster.start()
    await cluster.submit(mxjob(), {})
    await cluster.until(lambda: reason in cluster.condition("Waiting"))
    await cluster.advance(300)
    writes = cluster.history.writes()
    # Its four at first, then one each time.
    assert writes["create", "pods"] <= 4 + 7
    assert writes["patch", "mxjobs/status.kubeflow.org"] <= statuses


async def test_rejected_pods_back_off_while_services_are_missing(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        refuse(cluster, PODS, StatusError(401, "Unauthorized", WEBHOOK + "who?"))
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 20}), {})
        await cluster.until(lambda: "who?" in cluster.condition("Waiting"))
        await cluster.advance(300)
        assert cluster.history.writes()["create", "pods"] <= 10


@pytest.mark.parametrize("is_busy", [False, True])
async def test_job_whose_services_are_rejected_holds_no_pods(
    is_busy: bool, start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteLimiter, "is_busy", is_busy)
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        refuse(cluster, SERVICES, status.forbidden(SERVICES, "linear", "exceeded quota"))
        cluster.start()
        await cluster.submit(job_of("PyTorchJob", {"Master": 1, "Worker": 2}), forever())
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        await cluster.advance(60)
        assert not cluster.pods()
        assert cluster.history.writes()["create", "pods"] <= 3, "none after the first attempt"

        cluster.server.faults.clear()
        await cluster.until(lambda: len(cluster.pods()) == 3)
        await running(cluster)
        assert not cluster.condition("Waiting")
        assert not cluster.condition("Restarting")


async def test_replica_that_joins_a_running_job_waits_for_its_service(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteLimiter, "is_busy", True)
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1})
        await cluster.submit(job, forever("master-0", "worker-0", "worker-1"))
        await cluster.until(lambda: len(cluster.pods()) == 2)
        await running(cluster)
        refuse(cluster, SERVICES, status.forbidden(SERVICES, "linear", "exceeded quota"))
        two = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}
        await change(cluster, "PyTorchJob", two)
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        assert cluster.history.writes()["create", "pods"] == 2


@pytest.mark.parametrize("replica_type", ["Master", "Worker"])
async def test_large_job_with_a_rejected_template_gets_few_services(
    start_cluster: StartCluster, replica_type: str
) -> None:
    job = training_job("PyTorchJob", Master=1, Worker=200)
    template = job["spec"]["pytorchReplicaSpecs"][replica_type]["template"]
    template["spec"]["containers"][0]["ports"] = [{"containerPort": 123456}]
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        await cluster.submit(job)
        assert "containerPort" in str(await cluster.ended(phase="Failed"))
        await cluster.settled()
        writes = cluster.history.writes()
        assert (writes["create", "services"], writes["create", "pods"]) == (1, 2 + 1)
        assert not cluster.services()


async def test_large_job_gets_few_services_while_the_quota_is_exceeded(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        refuse(cluster, PODS, status.forbidden(PODS, "linear", "exceeded quota: compute, pods=0"))
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=200), MANY)
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        await cluster.advance(60)
        assert len(cluster.services()) == 2
        assert cluster.history.writes()["create", "pods"] <= 5 * 4, "each attempt tries both types"
        cluster.server.faults.clear()
        await cluster.until(lambda: len(cluster.pods()) == 201)
        assert len(cluster.services()) == 201


@pytest.mark.parametrize(
    "answer",
    [
        StatusError(400, "BadRequest", 'admission webhook "v" does not support dry run'),
        status.forbidden(PODS, "linear", WEBHOOK + "dry runs are not for pods"),
        # As of pods that a webhook completes, but not in a dry run.
        status.forbidden(PODS, "linear", "failed quota: compute: must specify limits.cpu"),
        StatusError(422, "Invalid", "spec.containers[0].image: Required value"),
        StatusError(500, "InternalError", "the dry run failed"),
        StatusError(409, "AlreadyExists", "it exists"),
    ],
)
async def test_large_job_is_created_where_only_dry_runs_are_rejected(
    answer: StatusError, start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a job of thousands, whose first slice is services alone.
    monkeypatch.setattr(next_changes, "first_slice", partial(first_slice, limit=70))
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        refuse(cluster, PODS, answer, times=2)
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=100), MANY)
        await cluster.until(lambda: len(cluster.pods()) == 101)
        await cluster.settled()
        assert not cluster.condition("Waiting")
        assert not {reason for reason in cluster.events() if reason.startswith("Failed")}


async def test_services_of_running_pods_are_created_while_another_pod_is_rejected(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        await cluster.submit(training_job("PyTorchJob", Master=1, Worker=100), MANY)
        await cluster.until(lambda: len(cluster.pods()) == 101)
        await running(cluster)
        refuse(cluster, PODS, status.forbidden(PODS, "linear", "exceeded quota: compute, pods=0"))
        await cluster.user.delete(PODS, cluster.key("linear-worker-7"))
        await cluster.until(lambda: "exceeded quota" in cluster.condition("Waiting"))
        for name in cluster.services():
            await cluster.user.delete(SERVICES, cluster.key(name))
        await cluster.until(lambda: len(cluster.services()) == 101)
        assert len(cluster.pods()) == 100


async def test_rejection_with_a_changing_message_has_the_same_backoff(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster() as cluster:
        for number in range(500):
            why = f"admission webhook denied the request: request {number:x}-{number * 7919:x}"
            refuse(cluster, PODS, status.forbidden(PODS, "linear", why), times=1)
        await assert_few_writes(cluster, "denied", statuses=4)


async def test_rejections_for_changing_reasons_do_not_loop(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        for number in range(500):
            word = "".join(chr(ord("a") + int(digit)) for digit in str(number))
            refuse(cluster, PODS, status.forbidden(PODS, "linear", f"because {word}"), times=1)
        await assert_few_writes(cluster, "because", statuses=12)


async def test_waiting_job_fails_exactly_at_its_deadline(start_cluster: StartCluster) -> None:
    async with start_cluster() as cluster:
        refuse(cluster, PODS, status.forbidden(PODS, "linear", "exceeded quota"))
        cluster.start()
        await cluster.submit(mxjob(runPolicy={"activeDeadlineSeconds": 13}), {})
        ended = await cluster.ended()
        assert ended["failure"]["reason"] == "DeadlineExceeded"
        # As the controller saw it: a busy server shows it later.
        begun, over = (datetime.fromisoformat(ended[n]) for n in ("startTime", "completionTime"))
        assert 13 <= (over - begun).total_seconds() < 15


async def test_replica_that_cannot_be_replaced_does_not_change_the_job(
    start_cluster: StartCluster,
) -> None:
    never = StatusError(422, "Invalid", 'Pod "linear-worker-0" is invalid: spec: no')
    async with start_cluster(kinds=only("PyTorchJob")) as cluster:
        cluster.start()
        job = job_of("PyTorchJob", {"Master": 1, "Worker": 1}, policy="ExitCode")
        outcomes = {**forever("master-0"), "worker-0": [KEEPS_RUNNING]}
        await cluster.submit(job, outcomes)
        await running(cluster)
        await cluster.until(lambda: len(cluster.pods()) == 2)
        await cluster.settled()
        refuse(cluster, PODS, never)
        await cluster.user.delete(PODS, cluster.key("linear-worker-0"))
        await cluster.until(lambda: never.message in cluster.condition("Waiting"))
        await cluster.advance(30)
        assert not cluster.condition("Failed")
        assert cluster.pods() == ["linear-master-0"]

        await change(cluster, "PyTorchJob", {"runPolicy": {"suspend": True}})
        await cluster.until(lambda: cluster.condition("Suspended") and not cluster.pods())
        cluster.server.faults.clear()
        await change(cluster, "PyTorchJob", {"runPolicy": {"suspend": False}})
        await cluster.until(lambda: len(cluster.pods()) == 2)


async def test_mpi_job_reports_a_taken_name_like_mpi_operator(
    start_cluster: StartCluster,
) -> None:
    async with start_cluster(kinds=only("MPIJob")) as cluster:
        foreign = {"metadata": {"name": "linear-config"}}
        await cluster.user.create(CONFIG_MAPS, cluster.namespace, foreign)
        cluster.start()
        await cluster.submit(job_of("MPIJob", {"Launcher": 1, "Worker": 1}), {})
        await cluster.until(lambda: "ErrResourceExists" in cluster.events())
        assert '"linear-config" of Kind "ConfigMap"' in cluster.events()["ErrResourceExists"]

        await cluster.user.delete(CONFIG_MAPS, cluster.key("linear-config"))
        await cluster.until(lambda: cluster.condition("Succeeded"))
