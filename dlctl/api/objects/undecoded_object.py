"""Objects whose spec and status are decoded only on access."""

from typing import Final

import msgspec
from msgspec.structs import force_setattr

from dlctl.api.meta import Object
from dlctl.api.nesting import MAX_DEPTH, MAX_VALUES, exceeds_depth, truncate_to_depth
from dlctl.api.objects.kept_metadata import check_metadata

# A part that an object does not have, or that stores do not keep.
NULL: Final = msgspec.Raw(b"null")
TOO_DEEP_TEXT: Final = (
    f"nested deeper than {MAX_DEPTH} levels, or of more than {MAX_VALUES} lists and objects"
)
# Replaces a spec that is nested too deeply: a string, which no decoder accepts, with the reason.
TOO_DEEP: Final = msgspec.Raw(msgspec.json.encode(TOO_DEEP_TEXT))


class UndecodedObject(Object, frozen=True, gc=False):
    """An object with the JSON text of its spec and status, which keep only their own bytes alive.

    A spec that nests deeper than :data:`MAX_DEPTH`, or has more than :data:`MAX_VALUES` lists and
    objects, becomes :data:`TOO_DEEP`. Such a status raises ValueError: without its status, a
    finished job would start again.
    """

    spec: msgspec.Raw = NULL
    status: msgspec.Raw = NULL
    # The part of a too deep spec within the limit; null if it has too many brackets to examine.
    truncated_spec: msgspec.Raw = NULL

    @property
    def readable_spec(self) -> msgspec.Raw:
        """The spec, or its part within the depth limit."""
        return self.truncated_spec if self.spec is TOO_DEEP else self.spec

    def __post_init__(self) -> None:
        check_metadata(self.metadata)
        if exceeds_depth(bytes(self.status), max_values=MAX_VALUES):
            raise ValueError(f"the status is {TOO_DEEP_TEXT}")
        spec, truncated = self.spec.copy(), NULL
        if exceeds_depth(bytes(self.spec), max_values=MAX_VALUES):
            cut = truncate_to_depth(bytes(self.spec), MAX_DEPTH)
            spec, truncated = TOO_DEEP, msgspec.Raw(cut.text) if cut.is_complete else truncated
        # Copies: the originals keep the whole list page or watch line alive.
        force_setattr(self, "spec", spec)
        force_setattr(self, "truncated_spec", truncated)
        force_setattr(self, "status", self.status.copy())
