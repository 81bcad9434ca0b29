"""Objects that a job has beside its pods and services, such as the PodGroup of its gang."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs
import msgspec

from dlctl.api.meta import Object, Resource


@attrs.frozen
class Dependent:
    """One object to have: its contents, without what says whose it is."""

    resource: Resource
    name: str
    # The object's fields, such as ``spec`` or ``data``; under ``metadata`` labels of its own.
    body: Mapping[str, Any]
    # Of ``spec``, what may come and go; it is taken away once it is not asked for any more.
    optional_fields: Collection[str] = ()
    # Of ``spec``, what is written but once, since others may change it then.
    create_only_fields: Collection[str] = ()


class DependentObject(Object, frozen=True, gc=False):
    """An object as it is there, as far as decisions need it."""

    spec: dict[str, Any] | None = msgspec.field(default=None)
    status: dict[str, Any] | None = msgspec.field(default=None)
