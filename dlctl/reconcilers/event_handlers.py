"""Handlers that map a change in a store to the keys of the affected jobs. They never wait.

They run before the store processes the next event, so a worker that they wake up finds the change
in the store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dlctl.api.batch_jobs import BatchJob
from dlctl.api.elastic import Scaler, ScalerObject
from dlctl.api.meta import BATCH_JOBS, UID, Object, ObjectKey, OwnerReference
from dlctl.api.nodes import Node
from dlctl.api.pods import ContainerStatus, Pod, PodPhase, Service
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store, owner_value, owners
from dlctl.reconcilers.membership.reconciler import scale_target
from dlctl.reconcilers.nodes.node_watch import NodeWatch
from dlctl.workqueue.queue import WorkQueue

# Objects that existed before the start have lower priority than current changes.
LOW_PRIORITY: Final = -100
# How long a job waits for more of the changes that its own writes cause: children appear and start
# in numbers, and one reconcile with one status serves them all.
SETTLE_S: Final = 0.1
# While other pods of the job are still to start, it waits longer, large jobs most of all: each of
# its reconciles looks at every pod, whether it has started or not.
STARTING_SETTLE_S: Final = 0.5
_PODS_PER_S: Final = 500
MAX_STARTING_SETTLE_S: Final = 5.0
MAX_SETTLE_S: Final = 2.0
# A pod that was merely assigned to a node changes nothing until its containers start, or cannot.
BOUND_SETTLE_S: Final = 10.0
# Of many pods that are being deleted, the job waits for more to be gone.
_LEAVING_PODS_PER_S: Final = 500
# The indexes of the pods that are still to start, or about to be gone, by their job.
STARTING: Final = "starting"
LEAVING: Final = "leaving"
# The index of the pods by the name of their node.
NODE: Final = "node"


def enqueue_job(queue: WorkQueue[ObjectKey]) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the changed job."""

    def handler(change: Change[Object]) -> None:
        # The executor asks for what its own status makes possible.
        delay_s = MAX_SETTLE_S if _is_status_write(change) else 0.0
        queue.add_after(change.key, delay_s, priority=_priority(change))

    return handler


def enqueue_owner(
    queues: Mapping[tuple[str, str], WorkQueue[ObjectKey]],
    pods: Store[Pod],
    launcher_jobs: Store[BatchJob],
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the owner of a changed child, in the queue of its kind.

    ``queues`` are by group and kind of the owner: a child may name a version that is no longer
    served. ``pods`` have the indexes that :func:`add_indexes` adds. A pod of one of the
    ``launcher_jobs`` belongs to the owner of that Job.
    """

    def handler(change: Change[Object]) -> None:
        last: ObjectKey | None = None
        for obj in (change.old, change.new):
            ref = _job_reference(obj, launcher_jobs) if obj else None
            queue = queues.get((ref.group, ref.kind)) if ref else None
            if obj is None or ref is None or queue is None:
                continue
            key = ObjectKey(obj.metadata.namespace or "", ref.name)
            if key != last:
                delay_s = _settle_s(change, pods, key.namespace, ref.uid)
                queue.add_after(key, delay_s, priority=_priority(change))
            last = key

    return handler


def _job_reference(obj: Object, launcher_jobs: Store[BatchJob]) -> OwnerReference | None:
    """Return the reference to the job that a child belongs to, directly or through a Job.

    A pod that is seen before its Job has none: the Job is about to be seen.
    """
    ref = obj.metadata.controller
    if ref is None or (ref.group, ref.kind) != (BATCH_JOBS.group, BATCH_JOBS.kind):
        return ref
    launcher_job = launcher_jobs.get(ObjectKey(obj.metadata.namespace or "", ref.name))
    if launcher_job is None or launcher_job.metadata.uid != ref.uid:
        return None
    return launcher_job.metadata.controller


def enqueue_scale_target(
    read: Callable[[ScalerObject], Scaler], queue: WorkQueue[ObjectKey]
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the current and former target jobs of a scaler."""

    def handler(change: Change[ScalerObject]) -> None:
        for obj in (change.old, change.new):
            key = scale_target(read(obj)) if obj else None
            if key is not None:
                queue.add(key, priority=_priority(change))

    return handler


def enqueue_jobs_on_node(
    queues: Mapping[tuple[str, str], WorkQueue[ObjectKey]],
    pods: Store[Pod],
    launcher_jobs: Store[BatchJob],
    nodes: NodeWatch,
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the jobs with pods on a node that is going, or is lost.

    It keeps ``nodes`` up to date. The other arguments are as for :func:`enqueue_owner`.
    """

    def handler(change: Change[Node]) -> None:
        if not nodes.update(change):
            return
        for pod in pods.indexed(NODE, change.key.name):
            ref = _job_reference(pod, launcher_jobs)
            queue = queues.get((ref.group, ref.kind)) if ref else None
            if ref is not None and queue is not None:
                queue.add(ObjectKey(pod.metadata.namespace or "", ref.name))

    return handler


def add_indexes(pods: Store[Pod]) -> None:
    """Add the indexes by which handlers know what else a job is waiting for."""
    pods.add_index(STARTING, lambda pod: owners(pod) if _is_starting(pod) else ())
    pods.add_index(LEAVING, lambda pod: owners(pod) if pod.metadata.is_terminating else ())
    pods.add_index(NODE, _node_names)


def _node_names(pod: Pod) -> Iterable[str]:
    return (pod.node_name,) if pod.node_name else ()


def _is_starting(pod: Pod) -> bool:
    """Return whether the containers of a pod are still to start, and nothing holds them back."""
    is_held = pod.metadata.is_terminating or pod.is_gated
    return not is_held and pod.phase is PodPhase.PENDING


def _is_status_write(change: Change[Object]) -> bool:
    """Return whether nothing but the status has changed, which jobs have from dlctl."""
    old, new = change.old, change.new
    if old is None or new is None or new.metadata.generation is None:
        return False
    return _same_metadata(old, new)


def _is_expected(change: Change[Object]) -> bool:
    """Return whether a child has appeared or starts, and none of its containers has failed."""
    old, new = change.old, change.new
    if change.initial or new is None or new.metadata.is_terminating:
        return False
    if old is not None and old.metadata.uid != new.metadata.uid:
        return False
    return not isinstance(new, Pod) or not _has_ended(new)


def _settle_s(change: Change[Object], pods: Store[Pod], namespace: str, job: UID) -> float:
    """Return how long a job waits after a change of one of its children."""
    owner = owner_value(namespace, job)
    if _is_leaving(change):
        others = pods.count(LEAVING, owner) - (change.new is not None)
        return min(others / _LEAVING_PODS_PER_S, MAX_SETTLE_S)
    if not _is_expected(change):
        return 0.0
    if _is_binding(change):
        return BOUND_SETTLE_S
    if not pods.count(STARTING, owner) and not isinstance(change.new, Service):
        return SETTLE_S
    known_s = pods.owned_count(namespace, job) / _PODS_PER_S
    return min(STARTING_SETTLE_S + known_s, MAX_STARTING_SETTLE_S)


def _is_leaving(change: Change[Object]) -> bool:
    """Return whether a pod has begun to leave or is gone, and nothing else is new about it."""
    old, new = change.old, change.new
    if not isinstance(old, Pod):
        return False
    if not isinstance(new, Pod):
        return old.metadata.is_terminating
    if old.metadata.uid != new.metadata.uid or not new.metadata.is_terminating:
        return False
    if old.metadata.is_terminating:
        return _ended_by_itself(old) or not _ended_by_itself(new)
    # Restarts in place are counted once their pod leaves, and before it is gone.
    return not _has_restarted(new) and (_has_ended(old) or not _has_ended(new))


def _ended_by_itself(pod: Pod) -> bool:
    """Return whether a container of a terminating pod ended before anyone requested its end."""
    requested = pod.metadata.deletion_requested_at
    containers, _ = _statuses(pod)
    ends = (one.state.terminated for one in containers if one.state)
    times = [end.finished_at for end in ends if end is not None]
    return requested is not None and any(time is not None and time < requested for time in times)


def _is_binding(change: Change[Object]) -> bool:
    """Return whether a pod was merely assigned to a node: the start of its containers follows."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return False
    is_bound = not old.node_name and bool(new.node_name)
    return is_bound and _is_fresh(old) and _is_fresh(new) and _same_metadata(old, new)


def _is_fresh(pod: Pod) -> bool:
    """Return whether nobody has said more of a pod than that it is scheduled."""
    if pod.status is None:
        return True
    if pod.status.container_statuses or pod.status.init_container_statuses:
        return False
    is_scheduled = all(
        c.type == "PodScheduled" and c.status == "True" for c in pod.status.conditions or ()
    )
    return is_scheduled and pod.phase is PodPhase.PENDING


def _same_metadata(old: Object, new: Object) -> bool:
    """Return whether a change is not of the metadata that users and controllers write."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.generation == after.generation
        and before.labels == after.labels
        and before.annotations == after.annotations
        and before.owner_references == after.owner_references
        and not after.is_terminating
    )


def _has_ended(pod: Pod) -> bool:
    """Return whether a container has ended or was restarted, other than a completed init one."""
    if pod.phase.finished:
        return True
    containers, inits = _statuses(pod)
    failed = [one.state.terminated.exit_code for one in inits if one.state and one.state.terminated]
    return any(one.has_ended for one in containers) or any(failed) or _has_restarted(pod)


def _has_restarted(pod: Pod) -> bool:
    return any(one.restart_count for statuses in _statuses(pod) for one in statuses)


def _statuses(pod: Pod) -> tuple[Sequence[ContainerStatus], Sequence[ContainerStatus]]:
    """Return the statuses of the containers, and of the init containers."""
    if pod.status is None:
        return (), ()
    return pod.status.container_statuses or (), pod.status.init_container_statuses or ()


def _priority(change: Change[Object]) -> int:
    if change.initial:
        return LOW_PRIORITY
    same = (
        change.old is not None
        and change.new is not None
        and change.old.metadata.resource_version == change.new.metadata.resource_version
    )
    return LOW_PRIORITY if same else 0
