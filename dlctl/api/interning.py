"""Equal parts of objects, kept once: the replicas of a job differ in little but their names."""

from collections.abc import Hashable, Mapping
from copy import copy
from typing import Final, TypeVar

import msgspec

T = TypeVar("T", bound=Hashable)
S = TypeVar("S", bound=msgspec.Struct)

# The pods of a job arrive together, so few parts have to be remembered. An interned string of
# Python may stay forever, and tenants choose these.
_MAX_PARTS: Final = 1024
_MAX_TEXT_CHARS: Final = 512
# Of a part, and of all that are remembered at a time, in JSON: tenants choose how large they are.
_MAX_PART_BYTES: Final = 4 << 10
_MAX_BYTES: Final = 512 << 10
# In a map, or in a list.
_MAX_ITEMS: Final = 64


class Interner:
    """Remembers the parts seen last: at most 2,048 different ones, and about 1 MiB of them."""

    def __init__(self) -> None:
        self._recent: dict[Hashable, Hashable] = {}
        self._older: dict[Hashable, Hashable] = {}
        # Of the recent ones.
        self._bytes = 0

    def part(self, value: T) -> T:
        """Return a remembered value that equals this one, or else this one.

        A large one is not remembered, since it would outlive its object.
        """
        if isinstance(value, tuple) and len(value) > _MAX_ITEMS:
            return value
        known = self._recent.get(value)
        if known is None:
            known = self._older.get(value, value)
            size = len(msgspec.json.encode(known))
            if size > _MAX_PART_BYTES:
                return value
            if len(self._recent) == _MAX_PARTS or self._bytes > _MAX_BYTES:
                self._older, self._recent, self._bytes = self._recent, {}, 0
            self._recent[known] = known
            self._bytes += size
        return known  # type: ignore[return-value]

    def text(self, value: T) -> T:
        """Return the same as :meth:`part` for a text or None; long ones are not remembered."""
        return (
            value if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS else self.part(value)
        )

    def texts(self, values: Mapping[str, str] | None) -> dict[str, str] | None:
        """Return a map of which both keys and values are remembered ones; None if it is empty.

        A large one is returned as it is: to look for each of 100,000 labels takes long.
        """
        if not values:
            return None
        if len(values) > _MAX_ITEMS:
            return dict(values)
        return {self.text(key): self.text(value) for key, value in values.items()}


def with_parts(struct: S, **parts: object) -> S:
    """Return a copy with equal parts; its ``__post_init__``, which may drop things, has run."""
    same = copy(struct)
    for name, part in parts.items():
        msgspec.structs.force_setattr(same, name, part)
    return same
