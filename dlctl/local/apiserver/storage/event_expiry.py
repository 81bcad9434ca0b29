"""Events expire an hour after their last write, as on a real server."""

import asyncio
import logging
from typing import Final, NoReturn

import attrs

from dlctl.api.meta import EVENTS, ObjectKey
from dlctl.clock import Clock
from dlctl.local.apiserver.status import StatusError
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of

logger = logging.getLogger(__name__)

EVENT_TTL_S: Final = 3600.0
_INTERVAL_S: Final = 60.0


@attrs.define(eq=False)
class EventExpiry:
    """Removes expired events; those restored from a journal get an hour from the start."""

    storage: Storage
    clock: Clock
    # In order of the writes.
    _written_at_s: dict[ObjectKey, float] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.storage.observers.append(self._on_change)

    def _on_change(self, change: StorageEvent) -> None:
        if change.table != table_of(EVENTS):
            return
        self._written_at_s.pop(change.key, None)
        if change.new is not None:
            self._written_at_s[change.key] = self.clock.monotonic()

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            try:
                self._remove_expired()
            except StatusError as error:
                # The disk of the journal may be full.
                logger.warning("expired events not removed", extra={"error": str(error)})

    def _remove_expired(self) -> None:
        before_s = self.clock.monotonic() - EVENT_TTL_S
        expired = [key for key, at_s in self._written_at_s.items() if at_s <= before_s]
        for key in expired:
            if stored := self.storage.get(EVENTS, key):
                self.storage.remove(EVENTS, stored)
