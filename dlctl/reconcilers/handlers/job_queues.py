"""The queues of all kinds of jobs."""

import attrs

from dlctl.api.meta import ObjectKey, OwnerReference, Resource
from dlctl.workqueue.queue import WorkQueue


@attrs.define(eq=False)
class JobQueues:
    """The queues by the kind of their jobs; owners of other kinds have none."""

    # By group and kind: a reference may name a version that is no longer served.
    _queues: dict[tuple[str, str], WorkQueue[ObjectKey]] = attrs.field(init=False, factory=dict)

    def add(self, resource: Resource, queue: WorkQueue[ObjectKey]) -> None:
        self._queues[resource.group, resource.kind] = queue

    def find(
        self, reference: OwnerReference, namespace: str
    ) -> tuple[WorkQueue[ObjectKey], ObjectKey] | None:
        """Return the queue and the key of the job that an object of the namespace refers to."""
        queue = self._queues.get((reference.group, reference.kind))
        return None if queue is None else (queue, ObjectKey(namespace, reference.name))
