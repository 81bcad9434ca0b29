"""Events that wait to be sent: a bounded number, shared fairly by the namespaces. No I/O."""

from collections import OrderedDict, deque

import attrs

from dlctl.controller.event_correlator import CorrelatedEvent


@attrs.define(eq=False)
class EventQueue:
    """A queue in which the namespaces take turns, and the events of each stay in order.

    Once it is full, the namespace with the most events loses its newest.
    """

    max_count: int
    _by_namespace: OrderedDict[str, deque[CorrelatedEvent]] = attrs.field(
        init=False, factory=OrderedDict
    )
    _count: int = attrs.field(init=False, default=0)

    def __len__(self) -> int:
        return self._count

    def has_room(self, namespace: str) -> bool:
        """Return whether an event of a namespace can be added, if need be in another's place."""
        if self._count < self.max_count:
            return True
        own_count = len(self._by_namespace.get(namespace, ()))
        return own_count + 1 < len(self._by_namespace[self._largest_namespace()])

    def put(self, event: CorrelatedEvent) -> CorrelatedEvent | None:
        """Add an event, for which there is room; return the one that is dropped for it, if any."""
        dropped = None
        if self._count >= self.max_count:
            largest = self._largest_namespace()
            dropped = self._by_namespace[largest].pop()
            self._count_removal(largest)
        namespace = event.event.regarding.key.namespace
        self._by_namespace.setdefault(namespace, deque()).append(event)
        self._count += 1
        return dropped

    def pop(self) -> CorrelatedEvent:
        """Remove and return the oldest event of the namespace whose turn it is.

        :raises IndexError: if the queue is empty.
        """
        if not self._by_namespace:
            raise IndexError("no event is queued")
        namespace = next(iter(self._by_namespace))
        event = self._by_namespace[namespace].popleft()
        self._by_namespace.move_to_end(namespace)
        self._count_removal(namespace)
        return event

    def clear(self) -> None:
        self._by_namespace.clear()
        self._count = 0

    def _largest_namespace(self) -> str:
        return max(self._by_namespace, key=lambda one: len(self._by_namespace[one]))

    def _count_removal(self, namespace: str) -> None:
        self._count -= 1
        if not self._by_namespace[namespace]:
            del self._by_namespace[namespace]
