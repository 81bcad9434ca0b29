"""Changes of objects enqueue the keys of the affected jobs, and no others."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dlctl.api.batch_jobs import BatchJob
from dlctl.api.elastic import ScalerObject
from dlctl.api.meta import Object, ObjectKey, Resource
from dlctl.api.node_signals import NodeSignals
from dlctl.api.nodes import OUT_OF_SERVICE_TAINT, Node
from dlctl.api.pods import WORKERS_RUNNING_GATE, Pod
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers import event_handlers, settle_delays
from dlctl.reconcilers.nodes.node_watch import NodeWatch
from dlctl.workqueue.queue import WorkQueue

pytestmark = pytest.mark.looptime

Queue = WorkQueue[ObjectKey]
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
MNIST, OTHER = ObjectKey("ml", "mnist"), ObjectKey("ml", "other")
SIGNALS = ("example.com/leaving", "Draining")


@pytest.fixture
def queue() -> Queue:
    return WorkQueue()


async def taken(queue: Queue, *, after_s: float = settle_delays.SETTLE_S) -> list[ObjectKey]:
    """Return the queued keys in the order in which workers take them."""
    await asyncio.sleep(after_s)
    return [await queue.get() for _ in range(len(queue))]


def decode(as_: Any, name: str, *, version: str = "1", **fields: Any) -> Any:
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-of-{name}"}
    metadata |= {"resourceVersion": version, **fields.pop("metadata", {})}
    return msgspec.json.decode(msgspec.json.encode({"metadata": metadata, **fields}), type=as_)


def store_of(*pods: Pod) -> Store[Pod]:
    store = Store[Pod]()
    event_handlers.add_indexes(store)
    for each in pods:
        store.put(each)
    return store


def enqueue_owner(
    queue: Queue, *pods: Pod, launcher_job: BatchJob | None = None
) -> Callable[[Change[Any]], None]:
    """Return the handler of stores with these pods and this Job of a launcher."""
    launcher_jobs = Store[BatchJob]()
    if launcher_job is not None:
        launcher_jobs.put(launcher_job)
    queues = {(TFJOBS.group, TFJOBS.kind): queue}
    return event_handlers.enqueue_owner(queues, store_of(*pods), launcher_jobs)


def job(name: str = "mnist", *, version: str = "1") -> Object:
    found: Object = decode(Object, name, version=version)
    return found


def owned_by(name: str, *, api_version: str, kind: str) -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "uid-of-job"}
    return {"ownerReferences": [{**owner, "controller": True}]}


OWNED = owned_by("mnist", api_version="kubeflow.org/v1", kind="TFJob")


def child_of(
    job_name: str, *, api_version: str = "kubeflow.org/v1", kind: str = "TFJob", node: str = ""
) -> Pod:
    metadata = owned_by(job_name, api_version=api_version, kind=kind)
    pod: Pod = decode(Pod, f"{job_name}-pod", metadata=metadata, spec={"nodeName": node})
    return pod


async def test_changed_job_is_enqueued(queue: Queue) -> None:
    handler = event_handlers.enqueue_job(queue)
    handler(Change(None, job()))
    handler(Change(job("other"), None))
    assert await taken(queue) == [MNIST, OTHER]


@pytest.mark.parametrize(
    "unimportant",
    [
        pytest.param(Change(None, job("other"), initial=True), id="there before the start"),
        pytest.param(Change(job("other"), job("other")), id="unchanged"),
    ],
)
async def test_real_change_goes_first(unimportant: Change[Object], queue: Queue) -> None:
    handler = event_handlers.enqueue_job(queue)
    handler(unimportant)
    handler(Change(job(), job(version="2")))
    assert await taken(queue) == [MNIST, OTHER]


async def test_child_enqueues_its_owner_before_and_after_a_change(queue: Queue) -> None:
    handler = enqueue_owner(queue)
    handler(Change(child_of("mnist"), child_of("other")))
    assert await taken(queue) == [MNIST, OTHER]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(child_of("mnist", api_version="kubeflow.org/v0"), [MNIST], id="old version"),
        pytest.param(child_of("mnist", api_version="example.com/v1"), [], id="another group"),
        pytest.param(child_of("mnist", kind="MPIJob"), [], id="another kind"),
        pytest.param(decode(Pod, "alone"), [], id="without an owner"),
    ],
)
async def test_owner_is_matched_by_group_and_kind(
    pod: Pod, expected: list[ObjectKey], queue: Queue
) -> None:
    enqueue_owner(queue)(Change(None, pod))
    assert await taken(queue) == expected


LAUNCHER_JOB: BatchJob = decode(BatchJob, "launcher", metadata={"uid": "uid-of-job", **OWNED})


@pytest.mark.parametrize(
    ("launcher_job", "expected"),
    [
        pytest.param(LAUNCHER_JOB, [MNIST], id="of the job"),
        pytest.param(None, [], id="of no job"),
        pytest.param(decode(BatchJob, "launcher", metadata=OWNED), [], id="of a later job"),
        pytest.param(decode(BatchJob, "launcher", metadata={"uid": "uid-of-job"}), [], id="alone"),
    ],
)
async def test_pod_of_a_launchers_job_enqueues_the_owner_of_that(
    launcher_job: BatchJob | None, expected: list[ObjectKey], queue: Queue
) -> None:
    handler = enqueue_owner(queue, launcher_job=launcher_job)
    handler(Change(None, child_of("launcher", api_version="batch/v1", kind="Job")))
    assert await taken(queue) == expected


def pod(*, version: str = "1", **fields: Any) -> Pod:
    """Return a pod of the job, with fields of its status."""
    found: Pod = decode(
        Pod,
        "mnist-worker-0",
        version=version,
        metadata=OWNED | fields.pop("metadata", {}),
        status=fields,
    )
    return found


def container(**state: Any) -> dict[str, Any]:
    restarts = state.pop("restarts", 0)
    return {"name": "tensorflow", "restartCount": restarts, "state": state}


DONE, CRASHED = container(terminated={"exitCode": 0}), container(terminated={"exitCode": 1})
RUNNING = container(running={})
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("change", "is_urgent"),
    [
        pytest.param(Change(None, pod()), False, id="appeared"),
        pytest.param(Change(None, pod(), initial=True), True, id="there before the start"),
        pytest.param(Change(pod(), pod(containerStatuses=[RUNNING])), False, id="runs"),
        pytest.param(
            Change(pod(), pod(initContainerStatuses=[DONE], containerStatuses=[RUNNING])),
            False,
            id="initialized",
        ),
        pytest.param(Change(pod(), pod(initContainerStatuses=[CRASHED])), True, id="init failed"),
        pytest.param(Change(pod(), pod(containerStatuses=[DONE])), True, id="ended"),
        pytest.param(Change(pod(), pod(phase="Failed")), True, id="evicted"),
        pytest.param(
            Change(pod(), pod(containerStatuses=[container(waiting={}, restarts=1)])),
            True,
            id="restarted in place",
        ),
        pytest.param(Change(pod(), pod(metadata=DELETED)), True, id="being deleted"),
        pytest.param(Change(pod(), None), True, id="gone"),
        pytest.param(Change(pod(), pod(metadata={"uid": "new"})), True, id="replaced"),
    ],
)
async def test_job_waits_for_more_only_while_its_children_start(
    change: Change[Pod], is_urgent: bool, queue: Queue
) -> None:
    enqueue_owner(queue)(change)
    assert await taken(queue, after_s=0) == [MNIST] * is_urgent
    assert await taken(queue) == [MNIST] * (not is_urgent)


def assigned(node: str, **status: Any) -> Pod:
    found: Pod = decode(Pod, "mnist-worker-0", metadata=OWNED, spec={"nodeName": node}, **status)
    return found


SCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
NO_ROOM = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(assigned(""), assigned("node-a", status=SCHEDULED), [], id="scheduled"),
        pytest.param(
            assigned("", status=NO_ROOM),
            assigned("node-a", status=SCHEDULED),
            [MNIST],
            id="there is room at last",
        ),
        pytest.param(assigned(""), assigned("", status=NO_ROOM), [MNIST], id="no room"),
        pytest.param(
            assigned(""),
            assigned("node-a", status={"containerStatuses": [RUNNING]}),
            [MNIST],
            id="scheduled, and seen only once it runs",
        ),
    ],
)
async def test_assignment_to_a_node_waits_for_the_start_of_the_containers(
    old: Pod, new: Pod, expected: list[ObjectKey], queue: Queue
) -> None:
    enqueue_owner(queue)(Change(old, new))
    assert await taken(queue) == expected
    # On a node that is dead nothing follows.
    assert await taken(queue, after_s=settle_delays.BOUND_SETTLE_S) == ([] if expected else [MNIST])


def worker(number: int, **fields: Any) -> Pod:
    found: Pod = decode(Pod, f"mnist-worker-{number}", metadata=OWNED, **fields)
    return found


RUNS = {"status": {"phase": "Running", "containerStatuses": [RUNNING]}}
GATED = {"spec": {"schedulingGates": [{"name": WORKERS_RUNNING_GATE}]}}


@pytest.mark.parametrize(
    ("others", "settle_s"),
    [
        pytest.param([], 0.1, id="alone"),
        pytest.param([worker(1, **RUNS)], 0.1, id="the last one"),
        pytest.param([worker(1)], 0.5, id="another is still to start"),
        pytest.param([worker(1, **GATED)], 0.1, id="another waits for this one"),
        pytest.param([worker(n) for n in range(1, 251)], 1.0, id="many are still to start"),
        pytest.param([worker(n) for n in range(1, 5000)], 5.0, id="no longer than this"),
    ],
)
async def test_job_waits_longer_for_a_pod_while_others_are_still_to_start(
    others: list[Pod], settle_s: float, queue: Queue
) -> None:
    started = worker(0, **RUNS)
    enqueue_owner(queue, started, *others)(Change(worker(0), started))
    assert await taken(queue, after_s=settle_s - 0.01) == []
    assert await taken(queue, after_s=0.02) == [MNIST]


def leaving(number: int, **status: Any) -> Pod:
    metadata = OWNED | {"deletionTimestamp": "2026-01-01T00:00:31Z"}
    metadata["deletionGracePeriodSeconds"] = 30
    found: Pod = decode(Pod, f"mnist-worker-{number}", metadata=metadata, status=status)
    return found


RESTARTED = {"phase": "Running", "containerStatuses": [container(running={}, restarts=3)]}


def exited(time: str) -> Pod:
    """Return a worker whose deletion was requested at 00:00:01, and which ended at ``time``."""
    ended = container(terminated={"exitCode": 0, "finishedAt": f"2026-01-01T{time}Z"})
    return leaving(0, phase="Succeeded", containerStatuses=[ended])


@pytest.mark.parametrize(
    ("change", "others", "settle_s"),
    [
        pytest.param(Change(worker(0), leaving(0)), 0, 0.0, id="one is deleted"),
        pytest.param(Change(leaving(0), None), 0, 0.0, id="the last one is gone"),
        pytest.param(Change(worker(0), leaving(0)), 250, 0.5, id="many are deleted"),
        pytest.param(Change(leaving(0), None), 250, 0.5, id="many are still to go"),
        pytest.param(Change(leaving(0), None), 5000, 2.0, id="no longer than this"),
        pytest.param(
            Change(worker(0), leaving(0, phase="Failed")), 250, 0.0, id="has ended besides"
        ),
        pytest.param(Change(worker(0), None), 250, 0.0, id="gone without a warning"),
        pytest.param(Change(leaving(0), exited("00:00:09")), 250, 0.5, id="stopped as requested"),
        pytest.param(Change(leaving(0), exited("00:00:00")), 250, 0.0, id="had ended before that"),
        pytest.param(
            Change(worker(0, status=RESTARTED), leaving(0, **RESTARTED)),
            250,
            0.0,
            id="was restarted in place",
        ),
    ],
)
async def test_job_waits_for_all_pods_that_are_being_deleted(
    change: Change[Pod], others: int, settle_s: float, queue: Queue
) -> None:
    now = [change.new] if change.new else []
    enqueue_owner(queue, *now, *(leaving(number) for number in range(1, others + 1)))(change)
    assert await taken(queue, after_s=settle_s - 0.01 if settle_s else 0) == [MNIST] * (
        not settle_s
    )
    assert await taken(queue, after_s=0.02) == [MNIST] * bool(settle_s)


def job_with(**metadata: Any) -> Object:
    found: Object = decode(Object, "mnist", metadata={"generation": 1, **metadata})
    return found


@pytest.mark.parametrize(
    ("new", "is_urgent"),
    [
        pytest.param(job_with(resourceVersion="2"), False, id="status"),
        pytest.param(job_with(generation=2), True, id="spec"),
        pytest.param(job_with(annotations={"suspend": "true"}), True, id="annotation"),
        pytest.param(job_with(generation=None), True, id="without a status subresource"),
        pytest.param(job_with(**DELETED), True, id="being deleted"),
        pytest.param(job_with(uid="new"), True, id="replaced"),
        pytest.param(None, True, id="gone"),
    ],
)
async def test_change_of_nothing_but_the_status_is_not_urgent(
    new: Object | None, is_urgent: bool, queue: Queue
) -> None:
    event_handlers.enqueue_job(queue)(Change(job_with(), new))
    assert await taken(queue, after_s=0) == [MNIST] * is_urgent
    # Another client may have written it.
    assert await taken(queue, after_s=settle_delays.MAX_SETTLE_S) == [MNIST] * (not is_urgent)


async def test_scaler_enqueues_the_jobs_that_it_names_and_has_named(queue: Queue) -> None:
    def scaler(target: str) -> ScalerObject:
        spec = {"selector": {"name": target}, "toDelete": {"count": 1}}
        found: ScalerObject = decode(ScalerObject, "in", kind="ScaleIn", spec=spec)
        return found

    handler = event_handlers.enqueue_scale_target(lambda obj: scalers.read(obj, SCALE_INS), queue)
    handler(Change(scaler("mnist"), scaler("other")))
    assert await taken(queue) == [MNIST, OTHER]


async def test_scaler_without_a_target_enqueues_nothing(queue: Queue) -> None:
    handler = event_handlers.enqueue_scale_target(lambda obj: scalers.read(obj, SCALE_INS), queue)
    handler(Change(None, decode(ScalerObject, "in", kind="ScaleIn", spec={})))
    assert await taken(queue) == []


def node(*, taint: str = "", condition: str = "", status: str = "True") -> Node:
    taints = [{"key": taint}] if taint else []
    conditions = [{"type": condition, "status": status}] if condition else []
    found: Node = decode(Node, "node-a", spec={"taints": taints}, status={"conditions": conditions})
    return found


@pytest.fixture
def node_handler(queue: Queue) -> Callable[[Change[Any]], None]:
    """Return the handler of a node, on which one of two jobs has a pod; it has seen the old one."""
    pods = store_of(
        child_of("mnist", node="node-a"),
        child_of("other", node="node-b"),
        child_of("foreign", kind="MPIJob", node="node-a"),
    )
    nodes = NodeWatch(NodeSignals.of(draining=SIGNALS, sick=["Sick"]))
    queues = {(TFJOBS.group, TFJOBS.kind): queue}
    handler = event_handlers.enqueue_jobs_on_node(queues, pods, Store[BatchJob](), nodes)

    def seen(change: Change[Node]) -> None:
        if change.old is not None:
            nodes.update(Change(None, change.old))
        handler(change)

    return seen


CALM, LEAVING = node(), node(taint="example.com/leaving")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(CALM, LEAVING, [MNIST], id="tainted"),
        pytest.param(CALM, node(condition="Draining"), [MNIST], id="condition"),
        pytest.param(LEAVING, CALM, [MNIST], id="stays after all"),
        pytest.param(None, LEAVING, [MNIST], id="new, and about to be removed"),
        pytest.param(CALM, CALM, [], id="a heartbeat"),
        pytest.param(LEAVING, LEAVING, [], id="known already"),
        pytest.param(CALM, node(condition="Draining", status="False"), [], id="false condition"),
        pytest.param(CALM, node(taint="example.com/gpu"), [], id="another taint"),
        pytest.param(LEAVING, None, [MNIST], id="gone"),
        pytest.param(CALM, node(condition="Sick"), [], id="sick, which demands no action"),
        pytest.param(CALM, node(condition="Ready", status="Unknown"), [MNIST], id="silent"),
        pytest.param(CALM, node(condition="Ready", status="False"), [], id="not ready"),
        pytest.param(
            node(condition="Ready", status="Unknown"),
            node(taint=OUT_OF_SERVICE_TAINT, condition="Ready", status="Unknown"),
            [MNIST],
            id="out of service",
        ),
        pytest.param(
            node(condition="Ready"),
            node(taint=OUT_OF_SERVICE_TAINT, condition="Ready"),
            [],
            id="out of service, but it answers",
        ),
    ],
)
async def test_change_of_a_node_enqueues_the_jobs_that_act_on_it(
    old: Node | None,
    new: Node | None,
    expected: list[ObjectKey],
    node_handler: Callable[[Change[Any]], None],
    queue: Queue,
) -> None:
    node_handler(Change(old, new))
    assert await taken(queue) == expected
