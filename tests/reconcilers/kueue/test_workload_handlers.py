"""Which jobs a change of a Workload wakes."""

import pytest

from dlctl.api.meta import ObjectKey, ObjectMeta, OwnerReference, Resource
from dlctl.api.objects.workloads import Workload, WorkloadSpec
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.reconcilers.kueue.workload_handlers import enqueue_queued_job
from dlctl.workqueue.queue import WorkQueue

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("owner_count", "woken_count"), [pytest.param(1, 1, id="one"), pytest.param(1000, 8, id="many")]
)
async def test_workload_wakes_no_more_than_a_few_jobs(owner_count: int, woken_count: int) -> None:
    owners = tuple(
        OwnerReference("kubeflow.org/v1", "PyTorchJob", f"job-{n}") for n in range(owner_count)
    )
    metadata = ObjectMeta("a", "default", owner_references=owners)
    old, new = (Workload(metadata, WorkloadSpec(active=active)) for active in (True, False))
    queue, queues = WorkQueue[ObjectKey](), JobQueues()
    queues.add(Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"), queue)
    enqueue_queued_job(queues, Store())(Change(old, new))
    woken = [await queue.get() for _ in range(woken_count)]
    assert woken == [ObjectKey("default", f"job-{n}") for n in range(woken_count)]
    assert len(queue) == 0
