"""Objects of which handlers see changes, and the keys that they enqueue for them."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from dlctl.api.meta import Object, ObjectKey, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.handlers import batch_periods, event_handlers
from dlctl.reconcilers.handlers.job_queues import JobQueues
from dlctl.workqueue.queue import WorkQueue

Queue = WorkQueue[ObjectKey]
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
PYTORCHJOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
MNIST, OTHER = ObjectKey("ml", "mnist"), ObjectKey("ml", "other")


async def taken(queue: Queue, *, after_s: float = batch_periods.BATCH_PERIOD_S) -> list[ObjectKey]:
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


def job_queues(queue: Queue) -> JobQueues:
    queues = JobQueues()
    queues.add(TFJOBS, queue)
    return queues


def enqueue_owner(
    queue: Queue, *pods: Pod, launcher_job: BatchJob | None = None
) -> Callable[[Change[Any]], None]:
    """Return the handler of stores with these pods and this Job of a launcher."""
    launcher_jobs = Store[BatchJob]()
    if launcher_job is not None:
        launcher_jobs.put(launcher_job)
    return event_handlers.enqueue_owner(job_queues(queue), store_of(*pods), launcher_jobs)


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
