"""The metadata of jobs, and of objects that they own, as far as it is kept in memory.

Whoever may create jobs, pods or config maps in a namespace chooses it, and may give any number of
them dlctl's label.
"""

from typing import Final

from dlctl.api.meta import ObjectMeta, check_bytes

# Of the labels, finalizers and owners together. Those of a pod template are at most half of it.
MAX_METADATA_BYTES: Final = 16 << 10


def check_metadata(metadata: ObjectMeta) -> None:
    """Raise ValueError, which makes an object malformed, if too much would be kept of it."""
    check_bytes(
        MAX_METADATA_BYTES,
        labels=metadata.labels,
        finalizers=metadata.finalizers,
        ownerReferences=metadata.owner_references,
    )
