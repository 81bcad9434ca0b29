"""How long a job waits for more changes before it is reconciled."""

from typing import Any

import pytest

from dlctl.api.meta import Object, ObjectKey
from dlctl.api.objects.pods import WORKERS_RUNNING_GATE, Pod
from dlctl.informers.handlers import Change
from dlctl.reconcilers.handlers import batch_periods, event_handlers
from dlctl.workqueue.queue import WorkQueue
from tests.reconcilers.handlers.changes import MNIST, OWNED, Queue, decode, enqueue_owner, taken

pytestmark = pytest.mark.looptime


@pytest.fixture
def queue() -> Queue:
    return WorkQueue()


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
    assert await taken(queue, after_s=batch_periods.BOUND_BATCH_PERIOD_S) == (
        [] if expected else [MNIST]
    )


def worker(number: int, **fields: Any) -> Pod:
    found: Pod = decode(Pod, f"mnist-worker-{number}", metadata=OWNED, **fields)
    return found


RUNS = {"status": {"phase": "Running", "containerStatuses": [RUNNING]}}
GATED = {"spec": {"schedulingGates": [{"name": WORKERS_RUNNING_GATE}]}}


@pytest.mark.parametrize(
    ("others", "batch_period_s"),
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
    others: list[Pod], batch_period_s: float, queue: Queue
) -> None:
    started = worker(0, **RUNS)
    enqueue_owner(queue, started, *others)(Change(worker(0), started))
    assert await taken(queue, after_s=batch_period_s - 0.01) == []
    assert await taken(queue, after_s=0.02) == [MNIST]


@pytest.mark.parametrize(
    ("label", "role", "batch_period_s"),
    [
        pytest.param("training.kubeflow.org/job-role", "master", 0.5, id="master"),
        pytest.param("training.kubeflow.org/job-role", "launcher", 0.5, id="launcher of an MPIJob"),
        pytest.param("training-job-role", "launcher", 0.5, id="launcher of a TrainingJob"),
        pytest.param("training.kubeflow.org/job-role", "worker", 1.0, id="worker of an MPIJob"),
        pytest.param("training-job-role", "worker", 1.0, id="worker of a TrainingJob"),
    ],
)
async def test_start_of_the_master_is_reported_while_workers_are_still_to_start(
    label: str, role: str, batch_period_s: float, queue: Queue
) -> None:
    labels = OWNED | {"labels": {label: role}}
    pod = [
        decode(Pod, "mnist-0", metadata=labels, status={"phase": phase})
        for phase in ("Pending", "Running")
    ]
    workers = [worker(number) for number in range(249)]
    enqueue_owner(queue, pod[1], *workers)(Change(*pod))
    assert await taken(queue, after_s=batch_period_s - 0.01) == []
    assert await taken(queue, after_s=0.02) == [MNIST]


async def test_change_of_a_running_master_waits_for_workers_that_are_still_to_start(
    queue: Queue,
) -> None:
    labels = OWNED | {"labels": {"training.kubeflow.org/job-role": "master"}}
    master = decode(Pod, "mnist-0", metadata=labels, status={"phase": "Running"})
    workers = [worker(number) for number in range(249)]
    enqueue_owner(queue, master, *workers)(Change(master, master))
    assert await taken(queue, after_s=0.99) == []
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
    ("change", "others", "batch_period_s"),
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
    change: Change[Pod], others: int, batch_period_s: float, queue: Queue
) -> None:
    now = [change.new] if change.new else []
    enqueue_owner(queue, *now, *(leaving(number) for number in range(1, others + 1)))(change)
    assert await taken(queue, after_s=batch_period_s - 0.01 if batch_period_s else 0) == [MNIST] * (
        not batch_period_s
    )
    assert await taken(queue, after_s=0.02) == [MNIST] * bool(batch_period_s)


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
    assert await taken(queue, after_s=batch_periods.MAX_BATCH_PERIOD_S) == [MNIST] * (not is_urgent)
