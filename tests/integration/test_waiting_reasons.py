"""Why is my job not running: situations as users meet them, each with its sentence.

Each is built on the API server as schedulers, kubelets, webhooks and Kueue would, and ``dlctl why``
must say the same as the condition.
"""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import attrs
import msgspec
import pytest

from dlctl.api.gangs import VOLCANO_POD_GROUPS
from dlctl.api.meta import PODS, Resource
from dlctl.api.pods import Pod
from dlctl.api.workloads import WORKLOADS
from dlctl.cli.jobs.explanation import explain
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.clock import timestamp
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from tests.builders import KINDS, mxjob, template, training_job
from tests.dialects.et_operator.manifests import elastic_job
from tests.mpi_v2beta1 import mpi_job
from tests.support.harness import ClusterHarness, StartCluster
from tests.support.pod_groups import start_with_gangs
from tests.support.workloads import create_workload, serve_workloads, write_workload

JSON = dict[str, Any]
Act = Callable[[ClusterHarness], Awaitable[None]]
# Nobody schedules its pods, so that nothing but the test writes their statuses.
NOBODY: Final = "nobody"
NODE: Final = "node-a"
COLLECTED: Final = "soon collected elsewhere: its pods are on a node that does not exist"
MASTER: Final = "linear-master-0"
WORKER: Final = "linear-worker-0"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


@attrs.frozen
class Situation:
    """A job, what happens to it, and what it is then said to wait for."""

    reason: str
    sentence: str
    job: JSON
    act: Act
    # What is there before the job is created.
    before: Act | None = None
    options: Options = attrs.field(factory=Options)
    # The gang scheduler, if any.
    gangs: str = ""
    kueue: bool = False
    # Why only the embedded server can be brought into the situation.
    embedded: str = ""


def with_scheduler(job: JSON) -> JSON:
    """Return a job none of whose pods is scheduled."""
    for template_of in templates(job["spec"]):
        template_of["spec"]["schedulerName"] = NOBODY
    return job


def templates(node: Any) -> Iterator[JSON]:
    """Yield the pod templates of a spec in any form."""
    if isinstance(node, list):
        for each in node:
            yield from templates(each)
    elif isinstance(node, dict):
        if "template" in node:
            yield node["template"]
        for each in node.values():
            yield from templates(each)


def pytorch_job(policy: JSON | None = None, **pod: Any) -> JSON:
    job = training_job("PyTorchJob", Master=1, Worker=1)
    for template_of in templates(with_scheduler(job)["spec"]):
        template_of["spec"] |= pod
    if policy:
        job["spec"]["runPolicy"] = policy
    return job


async def nothing(_: ClusterHarness) -> None:
    """Leave the job alone."""


def bound(name: str = WORKER, **fields: Any) -> Act:
    """Return what binds a pod to a node, and reports a status like its kubelet."""

    async def act(cluster: ClusterHarness) -> None:
        await cluster.until(lambda: name in cluster.pods())
        if name != MASTER and MASTER in cluster.pods():
            await bound(MASTER, **runs())(cluster)
        binding = Resource("", "v1", f"pods/{name}/binding", "Binding")
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"metadata": {"name": name}, "target": target}
        await cluster.user.create(binding, cluster.namespace, body)
        await reported(name, **fields)(cluster)

    return act


def reported(name: str = WORKER, **fields: Any) -> Act:
    """Return what writes a pod's status, without a node."""

    async def act(cluster: ClusterHarness) -> None:
        await cluster.until(lambda: name in cluster.pods())
        await cluster.user.patch(PODS, cluster.key(name), {"status": fields}, subresource="status")

    return act


def waits(reason: str, message: str = "", name: str = "pytorch", **fields: Any) -> JSON:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [container(name, state, **fields)]}


def runs(name: str = "pytorch") -> JSON:
    return {"phase": "Running", "containerStatuses": [container(name, {"running": {}})]}


def container(name: str, state: JSON, **fields: Any) -> JSON:
    base = {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0}
    return {**base, "state": state, **fields}


def unscheduled(message: str, name: str = WORKER) -> Act:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return reported(name, conditions=[condition])


def rejecting(answer: StatusError) -> Act:
    """Return what makes the server refuse pods, as admission does."""

    async def act(cluster: ClusterHarness) -> None:
        refusal = Fault(
            verb="create", resource="pods", user_agent="dlctl", status=answer, times=None
        )
        cluster.server.faults.add(refusal)

    return act


def forbidden(message: str) -> Act:
    return rejecting(status.forbidden(PODS, "linear-master-0", message))


async def take_name(cluster: ClusterHarness) -> None:
    squatter = {"metadata": {"name": WORKER}, **template()}
    squatter["spec"]["schedulerName"] = NOBODY
    await cluster.user.create(PODS, cluster.namespace, squatter)


def workload(*conditions: JSON, spec: JSON | None = None, **status_fields: Any) -> Act:
    """Return what creates Kueue's Workload of the job."""

    async def act(cluster: ClusterHarness) -> None:
        key = await create_workload(cluster, cluster.job(), conditions, **(spec or {}))
        await write_workload(cluster, key, status_fields)

    return act


def condition(type_: str, reason: str, message: str, value: str = "False") -> JSON:
    return {"type": type_, "status": value, "reason": reason, "message": message}


async def silence_node(cluster: ClusterHarness) -> None:
    """Let a worker run on a node that does not answer from now on."""
    await bound(**runs())(cluster)
    if isinstance(cluster.server, ApiServer):
        conflict = status.conflict(PODS, WORKER, "the node is not there")
        silent = Fault(
            verb="write", resource="pods", user_agent="kubelet", status=conflict, times=None
        )
        cluster.server.faults.add(silent)


async def lose_node(cluster: ClusterHarness) -> None:
    await silence_node(cluster)
    await cluster.user.delete(PODS, cluster.key(WORKER))


async def keep_by_finalizer(cluster: ClusterHarness) -> None:
    await silence_node(cluster)
    body = {"metadata": {"finalizers": ["example.com/keep"]}}
    await cluster.user.patch(PODS, cluster.key(WORKER), body)
    await cluster.user.delete(PODS, cluster.key(WORKER), grace_period_s=0)


async def refuse_gang(cluster: ClusterHarness) -> None:
    """Report on a PodGroup as Volcano does that finds no room for it."""
    await cluster.until(lambda: cluster.objects(VOLCANO_POD_GROUPS))
    why = condition(
        "Unschedulable", "NotEnoughResources", "2/0 tasks in gang unschedulable", "True"
    )
    body = {"status": {"phase": "Pending", "conditions": [why]}}
    await cluster.user.patch(VOLCANO_POD_GROUPS, cluster.key(), body, subresource="status")
    await cluster.until(lambda: "in gang" in cluster.condition("Waiting"))


async def fail_worker(cluster: ClusterHarness) -> None:
    now = timestamp(cluster.clock.now())
    end = {"exitCode": 137, "reason": "Error", "startedAt": now, "finishedAt": now}
    ended = [container("pytorch", {"terminated": end})]
    await bound(phase="Failed", containerStatuses=ended)(cluster)


async def start_one_worker(cluster: ClusterHarness) -> None:
    """Let one of two workers run, and the other begin to start later."""
    await bound(WORKER, **runs("mpi"))(cluster)
    await cluster.advance(20)
    await bound("linear-worker-1", **waits("ContainerCreating", name="mpi"))(cluster)


async def start_unready_workers(cluster: ClusterHarness) -> None:
    for name in (WORKER, "linear-worker-1"):
        await bound(name, **runs("mpi"))(cluster)


ONE: Final = "worker-0 (1 of 2 replicas) waits: "
QUOTA: Final = "insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed"
SERVERS: Final = "admission is simulated"
SUSPENDED: Final = {"suspend": True}
INIT: Final[JSON] = {"initContainers": [{"name": "fetch", "image": "fetch:1"}]}
SITUATIONS: Final = {
    "suspended": Situation(
        "Suspended",
        "the job is suspended: `dlctl resume pytorchjob/linear` starts it",
        pytorch_job(SUSPENDED),
        nothing,
    ),
    "kueue has no quota": Situation(
        "WaitingForQuota",
        f"Kueue has not admitted the job from queue team-a: {QUOTA}",
        pytorch_job(SUSPENDED),
        workload(condition("QuotaReserved", "Pending", f"{QUOTA}.")),
        kueue=True,
    ),
    "kueue has no flavor": Situation(
        "NoMatchingFlavor",
        "Kueue has not admitted the job from queue team-a: flavor spot does not match node "
        "affinity",
        pytorch_job(SUSPENDED),
        workload(
            condition(
                "QuotaReserved", "NoMatchingFlavor", "flavor spot does not match node affinity"
            )
        ),
        kueue=True,
    ),
    "kueue has evicted it": Situation(
        "WaitingForQuota",
        "Kueue has evicted the job (Preempted: to make room for a job), and Kueue has not admitted "
        f"it from queue team-a: {QUOTA}; it is queued again at TIME",
        pytorch_job(SUSPENDED),
        workload(
            condition("QuotaReserved", "Pending", QUOTA),
            condition("Evicted", "Preempted", "to make room for a job", "True"),
            requeueState={"requeueAt": "2026-01-01T12:00:00Z"},
        ),
        kueue=True,
    ),
    "kueue waits for a check": Situation(
        "AdmissionCheckPending",
        "Kueue waits for the admission check capacity (Pending: waiting for nodes)",
        pytorch_job(SUSPENDED),
        workload(
            condition("QuotaReserved", "QuotaReserved", "", "True"),
            admissionChecks=[
                {"name": "capacity", "state": "Pending", "message": "waiting for nodes"}
            ],
        ),
        kueue=True,
    ),
    "kueue has deactivated it": Situation(
        "WorkloadDeactivated",
        "Kueue has deactivated Workload pytorchjob-linear-1a2b3: set its spec.active to true",
        pytorch_job(SUSPENDED),
        workload(spec={"active": False}),
        kueue=True,
    ),
    "kueue gates its pods": Situation(
        "QueuedByKueue",
        "master-0, worker-0 (2 of 2 replicas) wait: Kueue has not admitted the pod",
        pytorch_job(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
        nothing,
    ),
    "gated by others": Situation(
        "SchedulingGated",
        "master-0, worker-0 (2 of 2 replicas) wait: the scheduling gate example.com/data holds the "
        "pod until its owner removes it",
        pytorch_job(schedulingGates=[{"name": "example.com/data"}]),
        nothing,
    ),
    "gang without room": Situation(
        "PodGroupNotAdmitted",
        "PodGroup default/linear is not admitted by volcano",
        pytorch_job(),
        nothing,
        gangs="volcano",
    ),
    "gang without nodes": Situation(
        "PodGroupNotAdmitted",
        "PodGroup default/linear is not admitted by volcano: 2/0 tasks in gang unschedulable",
        pytorch_job(),
        refuse_gang,
        gangs="volcano",
    ),
    "quota exceeded": Situation(
        "QuotaExceeded",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: exceeded quota: '
        "gpus, requested: pods=1, used: pods=2, limited: pods=2; it is tried again until the quota "
        "has room",
        pytorch_job(),
        nothing,
        before=forbidden("exceeded quota: gpus, requested: pods=1, used: pods=2, limited: pods=2"),
        embedded=SERVERS,
    ),
    "pod security": Situation(
        "PodSecurityDenied",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: violates '
        'PodSecurity "restricted:latest": privileged; change the template or the '
        "namespace's level",
        pytorch_job(),
        nothing,
        before=forbidden('violates PodSecurity "restricted:latest": privileged'),
        embedded=SERVERS,
    ),
    "service account": Situation(
        "ServiceAccountNotFound",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: error looking up '
        'service account default/trainer: serviceaccount "trainer" not found; create it or name '
        "another",
        pytorch_job(),
        nothing,
        before=forbidden(
            'error looking up service account default/trainer: serviceaccount "trainer" not found'
        ),
        embedded=SERVERS,
    ),
    "not authorized": Situation(
        "Forbidden",
        'pod linear-master-0 is forbidden: pods "linear-master-0" is forbidden: User "dlctl" '
        "cannot create resource; the rights of dlctl and the admission plugins decide",
        pytorch_job(),
        nothing,
        before=forbidden('User "dlctl" cannot create resource'),
        embedded=SERVERS,
    ),
    "webhook denies": Situation(
        "WebhookDenied",
        'pod linear-master-0 is rejected: admission webhook "policy.example.com" denied the '
        "request: no team label; the webhook's owner decides what it accepts",
        pytorch_job(),
        nothing,
        before=rejecting(
            StatusError(
                400,
                "BadRequest",
                'admission webhook "policy.example.com" denied the request: no team label',
            )
        ),
        embedded=SERVERS,
    ),
    "webhook fails": Situation(
        "WebhookFailed",
        "pod linear-master-0 is rejected: Internal error occurred: failed calling webhook "
        '"policy.example.com": connection refused; the webhook does not answer as it should',
        pytorch_job(),
        nothing,
        before=rejecting(
            StatusError(
                500,
                "InternalError",
                'Internal error occurred: failed calling webhook "policy.example.com": connection '
                "refused",
            )
        ),
        embedded=SERVERS,
    ),
    "name taken": Situation(
        "NameTaken",
        "the name of pod linear-worker-0 is taken: the existing object belongs to no controller; "
        "delete that object or rename the job",
        pytorch_job(),
        nothing,
        before=take_name,
    ),
    "back-off": Situation(
        "RestartBackOff",
        f"{ONE}ended with exit code 137 (killed (SIGKILL): out of memory, evicted or "
        "force-deleted) and restarts at TIME, after 1 attempt",
        pytorch_job(),
        fail_worker,
        options=Options(restart_backoff_s=60.0),
    ),
    "no node": Situation(
        "Unschedulable",
        f"{ONE}no node fits: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
        pytorch_job(),
        unscheduled("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    ),
    "volume not bound": Situation(
        "VolumeNotBound",
        f"{ONE}no node fits: 0/3 nodes are available: pod has unbound immediate "
        "PersistentVolumeClaims",
        pytorch_job(),
        unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
    ),
    "no scheduler": Situation(
        "NotScheduled",
        "master-0, worker-0 (2 of 2 replicas) wait: no scheduler has picked up the pod: check that "
        "the one in schedulerName is running",
        pytorch_job(),
        nothing,
    ),
    "image not pulled": Situation(
        "ImagePullFailed",
        f"{ONE}image mxnet:1 cannot be pulled: check its name and tag, the registry and "
        "imagePullSecrets",
        pytorch_job(),
        bound(**waits("ImagePullBackOff", 'Back-off pulling image "mxnet:1"')),
    ),
    "image never pulled": Situation(
        "ErrImageNeverPull",
        f"{ONE}image mxnet:1 is not on node {NODE} and must not be pulled",
        pytorch_job(),
        bound(**waits("ErrImageNeverPull")),
    ),
    "image name": Situation(
        "InvalidImageName",
        f"{ONE}mxnet:1 is not a valid image name",
        pytorch_job(),
        bound(**waits("InvalidImageName", "couldn't parse image name")),
    ),
    "missing ConfigMap": Situation(
        "CreateContainerConfigError",
        f'{ONE}container pytorch cannot be configured: configmap "settings" not found',
        pytorch_job(),
        bound(**waits("CreateContainerConfigError", 'configmap "settings" not found')),
    ),
    "missing key of a Secret": Situation(
        "CreateContainerConfigError",
        f"{ONE}container pytorch cannot be configured: couldn't find key token in Secret "
        "default/s3",
        pytorch_job(),
        bound(
            **waits("CreateContainerConfigError", "couldn't find key token in Secret default/s3")
        ),
    ),
    "container not created": Situation(
        "CreateContainerError",
        f"{ONE}container pytorch cannot be created: failed to generate container spec",
        pytorch_job(),
        bound(**waits("CreateContainerError", "failed to generate container spec")),
    ),
    "crash loop": Situation(
        "CrashLoopBackOff",
        f"{ONE}container pytorch keeps exiting, the last time with exit code 1 (general error)",
        pytorch_job(),
        bound(
            **waits(
                "CrashLoopBackOff",
                "back-off 40s restarting failed container",
                restartCount=3,
                lastState={"terminated": {"exitCode": 1, "reason": "Error"}},
            )
        ),
    ),
    "image of an init container": Situation(
        "ImagePullFailed",
        f"{ONE}image fetch:1 cannot be pulled: check its name and tag, the registry and "
        "imagePullSecrets",
        pytorch_job(**INIT),
        bound(
            initContainerStatuses=[container("fetch", {"waiting": {"reason": "ErrImagePull"}})],
            **waits("PodInitializing"),
        ),
    ),
    "init container runs": Situation(
        "InitContainerRunning",
        f"{ONE}init container fetch runs",
        pytorch_job(**INIT),
        bound(
            initContainerStatuses=[container("fetch", {"running": {}})],
            **waits("PodInitializing"),
        ),
        embedded=COLLECTED,
    ),
    "container being created": Situation(
        "ContainerCreating",
        f"{ONE}the containers are being created on node {NODE}, which includes pulling images and "
        "mounting volumes",
        pytorch_job(),
        bound(**waits("ContainerCreating")),
        embedded=COLLECTED,
    ),
    "kubelet silent": Situation(
        "KubeletSilent",
        f"{ONE}the kubelet of node {NODE} has not reported on the pod",
        pytorch_job(),
        bound(),
        embedded=COLLECTED,
    ),
    "pod on a lost node": Situation(
        "PodTerminating",
        f"{ONE}the previous pod is still being deleted on node {NODE}: if the node is lost, give "
        "it the taint node.kubernetes.io/out-of-service",
        pytorch_job(),
        lose_node,
        embedded=COLLECTED,
    ),
    "pod with a finalizer": Situation(
        "PodTerminating",
        f"{ONE}the previous pod is deleted but kept by the finalizer example.com/keep",
        pytorch_job(),
        keep_by_finalizer,
    ),
    "launcher waits for workers that run": Situation(
        "WaitingForReplicas",
        (
            "launcher-0 (1 of 3 replicas) waits: starts once the other 2 replicas are running; "
            "not yet: worker-1"
        ),
        with_scheduler(training_job("MPIJob", Launcher=1, Worker=2)),
        start_one_worker,
        embedded=COLLECTED,
    ),
    "launcher waits for workers that are ready": Situation(
        "WaitingForReplicas",
        "launcher-0 (1 of 3 replicas) waits: starts once the other 2 replicas are ready; not yet: "
        "worker-0, worker-1",
        with_scheduler(mpi_job(2, name="linear", launcherCreationPolicy="WaitForWorkersReady")),
        start_unready_workers,
        embedded=COLLECTED,
    ),
    "elastic job": Situation(
        "Unschedulable",
        "worker-0 (1 of 3 replicas) waits: no node fits: 0/3 nodes are available",
        with_scheduler(elastic_job(name="linear", worker={"replicas": 2})),
        unscheduled("0/3 nodes are available."),
    ),
    "list form": Situation(
        "Unschedulable",
        "worker-0 (1 of 4 replicas) waits: no node fits: 0/3 nodes are available",
        with_scheduler(mxjob(group="fioravanzo.org", RuntimeId="abcd")),
        unscheduled("0/3 nodes are available.", "linear-worker-abcd-0"),
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_job_says_what_it_waits_for(start_cluster: StartCluster, name: str) -> None:
    situation = SITUATIONS[name]
    kind = kind_of_api_version(KINDS, situation.job["apiVersion"], situation.job["kind"])
    assert kind is not None
    async with start_cluster(kinds=[kind], options=situation.options) as cluster:
        if situation.embedded:
            cluster.require_embedded(situation.embedded)
        await start(cluster, situation)
        await cluster.submit(situation.job)
        await situation.act(cluster)
        expected = (situation.reason, situation.sentence)
        await cluster.until(lambda: waiting(cluster) == expected)
        stated = cluster.status()["conditions"]
        assert stated[0]["type"] == "Waiting"
        assert stated[-1]["type"] != "Waiting"
        sentence = stated[0]["message"]
        assert f"  {sentence}" in why(cluster, kind)


async def start(cluster: ClusterHarness, situation: Situation) -> None:
    # What pods say is written by the test.
    cluster.node.has_room.clear()
    if situation.kueue:
        await serve_workloads(cluster.user, cluster.namespace)
    if situation.before:
        await situation.before(cluster)
    if situation.gangs:
        await start_with_gangs(cluster, situation.gangs)
    else:
        cluster.start()


def waiting(cluster: ClusterHarness) -> tuple[str, str]:
    """Return reason and message of the condition; messages that come later replace earlier ones."""
    found = cluster.status().get("conditions") or ()
    stated = next((c for c in found if c["type"] == "Waiting"), {"reason": "", "message": ""})
    message = _TIME.sub("TIME", stated["message"]).replace(cluster.namespace, "default")
    return stated["reason"], message


def why(cluster: ClusterHarness, kind: Kind) -> list[str]:
    """Return the lines of ``dlctl why``."""
    pods = [msgspec.convert(pod, Pod) for pod in cluster.objects(PODS)]
    job = JobSnapshot.of(kind, cluster.job())
    return list(explain(job, pods, (), cluster.clock.now()))


def test_table_has_the_situations_that_users_meet() -> None:
    assert len(SITUATIONS) >= 35
    assert len({situation.reason for situation in SITUATIONS.values()}) >= 25


@pytest.mark.embedded_only("it installs an older Kueue, beside which others install the newest")
async def test_kueue_that_is_installed_later_in_an_older_version_is_found(
    start_cluster: StartCluster,
) -> None:
    older = attrs.evolve(WORKLOADS, version="v1beta1")
    job = pytorch_job(SUSPENDED)
    async with start_cluster() as cluster:
        cluster.start()
        await cluster.submit(job)
        await cluster.until(lambda: waiting(cluster)[0] == "Suspended")
        await serve_workloads(cluster.user, cluster.namespace, older)
        quota = condition("QuotaReserved", "Pending", QUOTA)
        key = await create_workload(cluster, cluster.job(), [quota], resource=older)
        await cluster.until(lambda: waiting(cluster)[0] == "WaitingForQuota")

        admitted = condition("Admitted", "Admitted", "", "True")
        await write_workload(cluster, key, {"conditions": [admitted]}, older)
        await cluster.until(lambda: waiting(cluster)[0] == "Suspended")
