"""Objects whose spec and status are decoded only when they are read."""

from typing import Final

import msgspec
from msgspec.structs import force_setattr

from dlctl.api.meta import Object
from dlctl.api.nesting import MAX_DEPTH, exceeds_depth, truncate_to_depth

# In place of a spec: a text, which no reader of a spec accepts, and which says why.
TOO_DEEP: Final = msgspec.Raw(msgspec.json.encode(f"nested deeper than {MAX_DEPTH} levels"))


class UndecodedObject(Object, frozen=True, gc=False):
    """An object with the JSON text of its spec and status, which hold no more than their bytes.

    A spec that nests deeper than :data:`MAX_DEPTH` is :data:`TOO_DEEP` instead. A status that does
    is a ValueError: without its status, a job that has ended would start again.
    """

    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")
    # Of a spec that nests too deep, what does not; null if there is too much of it to be looked at.
    truncated_spec: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def readable_spec(self) -> msgspec.Raw:
        """The spec, or as much of it as does not nest too deep."""
        return self.truncated_spec if self.spec is TOO_DEEP else self.spec

    def __post_init__(self) -> None:
        if exceeds_depth(bytes(self.status)):
            raise ValueError(f"the status is nested deeper than {MAX_DEPTH} levels")
        spec, truncated = self.spec.copy(), msgspec.Raw(b"null")
        if exceeds_depth(bytes(self.spec)):
            cut, complete = truncate_to_depth(bytes(self.spec), MAX_DEPTH)
            spec, truncated = TOO_DEEP, msgspec.Raw(cut) if complete else truncated
        # Copies, since what is decoded keeps the whole list page or watch line alive.
        force_setattr(self, "spec", spec)
        force_setattr(self, "truncated_spec", truncated)
        force_setattr(self, "status", self.status.copy())
