"""Handlers that map a change in a store to the keys of the affected jobs. They never wait.

They run before the store processes the next event, so a worker that they wake up finds the change
in the store.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from dlctl.api.elastic import Scaler, ScalerObject
from dlctl.api.meta import Object, ObjectKey, Resource
from dlctl.api.nodes import Node
from dlctl.api.pods import Pod
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store
from dlctl.reconcilers.membership.reconciler import scale_target
from dlctl.workqueue.queue import WorkQueue

# Objects that existed before the start have lower priority than current changes.
LOW_PRIORITY: Final = -100


def enqueue_job(queue: WorkQueue[ObjectKey]) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the changed job."""

    def handler(change: Change[Object]) -> None:
        obj = change.new or change.old
        if obj is not None:
            queue.add(obj.key, priority=_priority(change))

    return handler


def enqueue_owner(resource: Resource, queue: WorkQueue[ObjectKey]) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the owner of a changed child, for jobs of one kind.

    Owners are matched by group and kind: a child may name a version that is no longer served.
    """

    def handler(change: Change[Object]) -> None:
        for obj in (change.old, change.new):
            ref = obj.metadata.controller if obj else None
            if obj and ref and (ref.group, ref.kind) == (resource.group, resource.kind):
                key = ObjectKey(obj.metadata.namespace or "", ref.name)
                queue.add(key, priority=_priority(change))

    return handler


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
    resource: Resource,
    pods: Store[Pod],
    drain_signals: Collection[str],
    queue: WorkQueue[ObjectKey],
) -> Callable[[Change[Any]], None]:
    """Return a handler that enqueues the jobs with pods on a node that is about to be removed.

    Nodes report often; only a change of their drain signals is relevant.
    """

    def handler(change: Change[Node]) -> None:
        new, old = change.new, change.old
        if new is None or new.has_drain_signal(drain_signals) == (
            old is not None and old.has_drain_signal(drain_signals)
        ):
            return
        for pod in pods:
            ref = pod.metadata.controller
            is_on_node = pod.spec is not None and pod.spec.node_name == new.metadata.name
            if is_on_node and ref and (ref.group, ref.kind) == (resource.group, resource.kind):
                queue.add(ObjectKey(pod.metadata.namespace or "", ref.name))

    return handler


def _priority(change: Change[Object]) -> int:
    if change.initial:
        return LOW_PRIORITY
    same = (
        change.old is not None
        and change.new is not None
        and change.old.metadata.resource_version == change.new.metadata.resource_version
    )
    return LOW_PRIORITY if same else 0
