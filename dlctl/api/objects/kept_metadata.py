"""The metadata of jobs, and of objects that they own, as far as it is kept in memory.

Whoever may create jobs, pods or config maps in a namespace chooses it, and may give any number of
them dlctl's label.
"""

from collections.abc import Collection
from typing import Final

from dlctl.api.interning import with_parts
from dlctl.api.meta import ObjectMeta, check_bytes

# Of the labels, finalizers and owners together. Those of a pod template are at most half of it.
MAX_METADATA_BYTES: Final = 16 << 10
_MAX_ANNOTATION_CHARS: Final = 4096


def check_metadata(metadata: ObjectMeta) -> None:
    """Raise ValueError, which makes an object malformed, if too much would be kept of it."""
    check_bytes(
        MAX_METADATA_BYTES,
        labels=metadata.labels,
        finalizers=metadata.finalizers,
        ownerReferences=metadata.owner_references,
    )


def without_other_annotations(metadata: ObjectMeta, names: Collection[str]) -> ObjectMeta:
    """Return metadata of which only these annotations are left, and none that are long."""
    if not (given := metadata.annotations):
        return metadata
    named = {name: given[name] for name in names if name in given}
    kept = {name: text for name, text in named.items() if len(text) <= _MAX_ANNOTATION_CHARS}
    return with_parts(metadata, annotations=kept)
