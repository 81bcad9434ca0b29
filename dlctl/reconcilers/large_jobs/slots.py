"""Slots for reconciles of jobs with many replicas or large specs, so that others need not wait."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import attrs

from dlctl.api.meta import ObjectKey
from dlctl.controller.fair_semaphore import FairSemaphore, SlotRequest

# Jobs with more replicas make more writes than others wait for.
MAX_REPLICAS_WITHOUT_SLOT: Final = 64
# Of each of these, as many more are for namespaces without one.
_SLOTS_FOR_REPLICAS: Final = 64
# A spec may have megabytes, and is in memory several times: read, decoded, and in each new pod.
_SLOTS_FOR_SPECS: Final = 4


def _slots(count: int) -> FairSemaphore:
    return FairSemaphore(count, extra=count)


@attrs.frozen(eq=False)
class SharedSlots:
    """The slots of jobs of all kinds, by namespace."""

    for_replicas: FairSemaphore = attrs.field(factory=lambda: _slots(_SLOTS_FOR_REPLICAS))
    for_specs: FairSemaphore = attrs.field(factory=lambda: _slots(_SLOTS_FOR_SPECS))


@attrs.frozen(eq=False)
class LargeJobSlots:
    """The slots of jobs of one kind whose reconciles may take minutes and much memory.

    Large jobs of a namespace hold up neither small ones nor those of other namespaces.
    """

    # Shared by all kinds.
    slots: FairSemaphore
    enqueue: Callable[[ObjectKey], None]
    _requests: dict[ObjectKey, SlotRequest] = attrs.field(init=False, factory=dict)

    @contextmanager
    def slot_if(self, key: ObjectKey, *, is_large: bool) -> Iterator[bool]:
        """Hold a slot for the reconcile of a large job; yield whether it may go on.

        Otherwise it is enqueued once it is its turn, and has a slot then.
        """
        if not is_large:
            self.withdraw(key)
            yield True
            return
        request = self._requests.get(key)
        if request is None:
            request = self.slots.request(key.namespace, partial(self.enqueue, key))
            self._requests[key] = request
        if not request.is_granted:
            yield False
            return
        try:
            yield True
        finally:
            self.withdraw(key)

    def withdraw(self, key: ObjectKey) -> None:
        """Forget the request of a job, if there is one."""
        if (request := self._requests.pop(key, None)) is not None:
            self.slots.end(request)
