"""The served resources: their names, strategy and columns.

Built-in resources are registered at startup, custom ones when their CRD is established.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource


class Strategy(Protocol):
    """Defaults, pruning and validation of one resource.

    The methods return the object to store and never modify their arguments. They raise
    ``StatusError`` (422, with errors) where the real server does.
    """

    def unknown_fields(self, obj: JSON) -> list[str]:
        """Return the paths of the fields that are dropped."""
        ...

    def admit_create(self, obj: JSON) -> JSON: ...

    def admit_update(self, old: JSON, new: JSON) -> JSON: ...

    def admit_status(self, old: JSON, new: JSON) -> JSON: ...


@attrs.frozen
class Column:
    """One column of ``kubectl get``; ``path`` is a JSONPath into the object."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


@attrs.frozen
class ServedResource:
    """One resource in one version, with everything its endpoints depend on."""

    resource: Resource
    singular: str
    strategy: Strategy
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    has_status: bool = False
    # Paths of replicas in spec and status, if the scale subresource is served.
    scale: Mapping[str, str] | None = None
    # Merge keys by field path ("spec.containers": "name"), for strategic merge patches.
    merge_keys: Mapping[str, str] = attrs.field(factory=dict)
    graceful: bool = False
    # For reviews: objects that are not stored.
    create_only: bool = False
    columns: Sequence[Column] = ()
    openapi: JSON | None = None
    # Field selectors of custom objects, such as "spec.framework".
    selectable_fields: Sequence[str] = ()
    # Brings objects that are older than the schema, up to a revision, into its form.
    as_read: Callable[[JSON], JSON] | None = attrs.field(default=None, eq=False)
    schema_revision: int = attrs.field(default=0, eq=False)

    @property
    def group_version_kind(self) -> JSON:
        """Return the group, version and kind as discovery and OpenAPI spell them."""
        resource = self.resource
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}


class ResourceRegistry:
    """The served resources by group, version and plural; it changes as CRDs come and go."""

    def __init__(self) -> None:
        self._served: dict[tuple[str, str, str], ServedResource] = {}

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(self._served.values())

    def add(self, served: ServedResource) -> None:
        resource = served.resource
        self._served[resource.group, resource.version, resource.plural] = served

    def remove(self, resource: Resource) -> None:
        self._served.pop((resource.group, resource.version, resource.plural), None)

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._served.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Return whether anything is served in a group and version."""
        return any((group, version) == key[:2] for key in self._served)
