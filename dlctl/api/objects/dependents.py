"""Dependents: objects of a job other than its pods and services, such as its gang's PodGroup."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs
import msgspec
from msgspec.structs import force_setattr

from dlctl.api.meta import Resource
from dlctl.api.objects.undecoded_object import NULL, UndecodedObject

APPLIED_HASH: Final = "dlctl.dev/applied-hash"
# Names of the applied annotations, so that they can be removed later.
APPLIED_ANNOTATIONS: Final = "dlctl.dev/applied-annotations"
GANG_RETRIED_AT: Final = "dlctl.dev/gang-retried-at"
# Of the text of a spec or status that is kept.
_MAX_BYTES: Final = 64 << 10


@attrs.frozen
class Dependent:
    """One wanted object: its contents, without owner reference and dlctl's metadata."""

    resource: Resource
    name: str
    # The object's fields, such as ``spec`` or ``data``; ``metadata`` may hold labels and
    # annotations.
    body: Mapping[str, Any]
    # Fields of ``spec`` that are removed from the object once the body no longer has them.
    optional_fields: Collection[str] = ()
    # Fields of ``spec`` that are written only on creation, since others may change them later.
    create_only_fields: Collection[str] = ()
    # True if an existing object of this name is used as it is, unless another owner controls it.
    may_exist: bool = False
    # True if it is used whatever controls it, since the author of the job has named it.
    may_be_shared: bool = False


class DependentObject(UndecodedObject, frozen=True, gc=False):
    """An existing object, as far as decisions need it.

    Whoever may create one in a namespace chooses its size, and decoded, it takes ten times that. A
    large spec or status is empty.
    """

    kept_annotations = (APPLIED_HASH, APPLIED_ANNOTATIONS, GANG_RETRIED_AT)

    def __post_init__(self) -> None:
        for name in ("spec", "status"):
            if memoryview(getattr(self, name)).nbytes > _MAX_BYTES:
                force_setattr(self, name, NULL)
        super().__post_init__()

    def decoded_spec(self) -> Mapping[str, Any]:
        return _decode(self.spec)

    def decoded_status(self) -> Mapping[str, Any]:
        return _decode(self.status)


def _decode(raw: msgspec.Raw) -> Mapping[str, Any]:
    """Return a JSON object; empty if it is none."""
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, Mapping) else {}
