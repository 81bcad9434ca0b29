"""Jobs as they are stored on the server, of which stores keep the large ones in part."""

from typing import Final, Self

import msgspec

from dlctl.api.interning import Interner, with_parts
from dlctl.api.meta import LAST_APPLIED_ANNOTATION
from dlctl.api.objects.undecoded_object import NULL, UndecodedObject

# Of spec and annotations: nearly all jobs have less.
MAX_STORED_BYTES: Final = 32 << 10
_OMITTED: Final = msgspec.Raw(b'"not kept in memory"')


class JobObject(UndecodedObject, frozen=True, gc=False):
    """A job as stored on the server, with spec and status undecoded."""

    api_version: str = ""
    kind: str = ""

    @property
    def has_spec(self) -> bool:
        """Return whether the spec and annotations are there: see :meth:`for_store`."""
        return self.spec is not _OMITTED

    def for_store(self, interner: Interner) -> Self:
        """Return the job, without spec and annotations if these are larger than most jobs'.

        Those are read from the server when they are needed: tenants choose their size and number.
        kubectl's copy of the job is never kept, and does not count.
        """
        given = (self.metadata.annotations or {}).items()
        others = {name: text for name, text in given if name != LAST_APPLIED_ANNOTATION}
        metadata = with_parts(self.metadata, annotations=others)
        kept = with_parts(self, metadata=metadata)
        if kept.given_bytes > MAX_STORED_BYTES:
            metadata = with_parts(metadata, annotations=None)
            kept = with_parts(kept, spec=_OMITTED, truncated_spec=NULL)
        return with_parts(kept, metadata=metadata.for_store(interner))

    @property
    def given_bytes(self) -> int:
        """The size of what the job's author chooses: its spec and annotations."""
        annotations = (self.metadata.annotations or {}).items()
        specs = (self.spec, self.truncated_spec)
        texts = sum(len(name) + len(value) for name, value in annotations)
        return texts + sum(memoryview(spec).nbytes for spec in specs)
