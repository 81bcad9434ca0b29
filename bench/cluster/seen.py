"""Objects that a watch has shown, and when it first did."""

import asyncio
import time
from collections.abc import Callable

import attrs

from bench.cluster.namespaces import LIMIT_S
from dlctl.api.json_types import JSON


@attrs.define(eq=False)
class Seen:
    """The objects of one watch that meet a condition; an object replaced by another counts twice.

    Times are those of ``time.perf_counter``.
    """

    meets: Callable[[JSON], bool] = lambda _: True
    _seen_at: dict[str, float] = attrs.field(factory=dict)
    _waiting: dict[int, asyncio.Event] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self._seen_at)

    def add(self, obj: JSON) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self._seen_at or not self.meets(obj):
            return
        self._seen_at[uid] = time.perf_counter()
        if event := self._waiting.get(len(self)):
            event.set()

    async def complete_s(self, count: int, since: float) -> float | None:
        """Return the seconds until this many had been seen; None if the limit was exceeded."""
        if len(self) < count:
            event = self._waiting.setdefault(count, asyncio.Event())
            try:
                async with asyncio.timeout(max(0.0, since + LIMIT_S - time.perf_counter())):
                    await event.wait()
            except TimeoutError:
                return None
        return list(self._seen_at.values())[count - 1] - since


def has_condition(type_: str) -> Callable[[JSON], bool]:
    """Return whether an object's condition is true."""

    def meets(obj: JSON) -> bool:
        conditions = obj.get("status", {}).get("conditions") or []
        return any(c["type"] == type_ and c["status"] == "True" for c in conditions)

    return meets
