"""Changes of objects enqueue the keys of the affected jobs, and no others."""

from collections.abc import Callable
from typing import Any

import pytest

from dlctl.api.meta import Object, ObjectKey
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import OUT_OF_SERVICE_TAINT, Node
from dlctl.api.objects.pods import Pod
from dlctl.api.objects.scalers import ScalerObject
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.handlers import event_handlers
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.workqueue.queue import WorkQueue
from tests.reconcilers.handlers.changes import (
    MNIST,
    OTHER,
    OWNED,
    PYTORCHJOBS,
    Queue,
    child_of,
    decode,
    enqueue_owner,
    job,
    job_queues,
    store_of,
    taken,
)

pytestmark = pytest.mark.looptime

SIGNALS = ("example.com/leaving", "Draining")


@pytest.fixture
def queue() -> Queue:
    return WorkQueue()


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


async def test_child_enqueues_owners_of_the_same_name_and_different_kinds(queue: Queue) -> None:
    queues, other = job_queues(queue), Queue()
    queues.add(PYTORCHJOBS, other)
    handler = event_handlers.enqueue_owner(queues, store_of(), Store[BatchJob]())
    # A list may show the next pod of a name right after the previous one.
    handler(Change(child_of("mnist"), child_of("mnist", kind="PyTorchJob")))
    assert (await taken(queue), await taken(other)) == ([MNIST], [MNIST])


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
    nodes = NodeTracker(NodeSignals.of(draining=SIGNALS, fault=["Sick"]))
    queues = job_queues(queue)
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
        pytest.param(CALM, node(condition="Sick"), [], id="unhealthy, which demands no action"),
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
