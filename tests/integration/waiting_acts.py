"""What schedulers, kubelets, webhooks and Kueue do to a job that then waits."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, Resource
from dlctl.api.objects.pod_groups import VOLCANO_POD_GROUPS
from dlctl.clock import timestamp
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.local.apiserver.server import ApiServer
from dlctl.local.apiserver.status import StatusError
from dlctl.options import Options
from tests.builders import template, training_job
from tests.support.harness import ClusterHarness
from tests.support.workloads import create_workload, write_workload

Act = Callable[[ClusterHarness], Awaitable[None]]
# Nobody schedules its pods, so that nothing but the test writes their statuses.
NOBODY: Final = "nobody"
NODE: Final = "node-a"
COLLECTED: Final = "soon collected elsewhere: its pods are on a node that does not exist"
MASTER: Final = "linear-master-0"
WORKER: Final = "linear-worker-0"


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
