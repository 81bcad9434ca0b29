"""The managers of an object's fields, as ``metadata.managedFields`` lists them."""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.fieldmanager.field_sets import (
    FieldSet,
    FieldSetError,
    difference,
    parse,
    union,
)

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_FIELDS_V1: Final = "FieldsV1"


@attrs.frozen
class ManagerIdentifier:
    """A manager by its name, its operation, and the version and subresource that it writes."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        # An applier owns its fields in whatever version it last applied them.
        version = "" if self.operation == APPLY else self.api_version
        return self.name, self.operation, version, self.subresource

    def text(self) -> str:
        """Return the manager as conflicts name it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text if self.operation == APPLY else f"{text} using {self.api_version}"


@attrs.frozen
class ManagedFields:
    """The fields of one manager, and when it last changed them."""

    manager: ManagerIdentifier
    fields: FieldSet
    time: str = ""


Managed = Sequence[ManagedFields]


def decode(entries: Iterable[JSON]) -> Managed:
    """Return the managers of the entries of a stored object."""
    return [_decoded(entry, entry["fieldsV1"]) for entry in entries]


def decode_sent(entries: Iterable[JSON]) -> Managed | None:
    """Return the managers of well-typed entries in a request; None if one of them is malformed."""
    found = {}
    for entry in entries:
        known = entry.get("operation") in (APPLY, UPDATE) and entry.get("fieldsType") == _FIELDS_V1
        if not known or not entry.get("apiVersion"):
            return None
        try:
            decoded = _decoded(entry, parse(entry.get("fieldsV1")))
        except FieldSetError:
            return None
        found[decoded.manager.identity] = decoded
    return list(found.values())


def _decoded(entry: JSON, fields: FieldSet) -> ManagedFields:
    names = ("manager", "operation", "apiVersion", "subresource")
    words = [entry.get(name, "") for name in names]
    return ManagedFields(ManagerIdentifier(*words), fields, entry.get("time", ""))


def encode(managed: Managed) -> list[JSON]:
    """Return the wire entries, appliers first, then by time and name."""
    ordered = sorted(managed, key=_order)
    return [_encoded(each) for each in ordered]


def _order(managed: ManagedFields) -> tuple[str, ...]:
    manager = managed.manager
    return manager.operation, managed.time, *attrs.astuple(manager)


def _encoded(managed: ManagedFields) -> JSON:
    manager = managed.manager
    entry: JSON = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": managed.time,
        "fieldsType": _FIELDS_V1,
        "fieldsV1": managed.fields,
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def find(managed: Managed, manager: ManagerIdentifier) -> ManagedFields | None:
    return next((each for each in managed if each.manager.identity == manager.identity), None)


def replace(managed: Managed, entry: ManagedFields) -> Managed:
    """Return the managers with an entry in place of its former one, or without it if empty."""
    others = [each for each in managed if each.manager.identity != entry.manager.identity]
    return [*others, entry] if entry.fields else others


def release(managed: Managed, fields: FieldSet) -> Managed:
    """Return the managers without some fields."""
    if not fields:
        return managed
    kept = [attrs.evolve(each, fields=difference(each.fields, fields)) for each in managed]
    return [each for each in kept if each.fields]


def all_fields(managed: Iterable[ManagedFields]) -> FieldSet:
    result: FieldSet = {}
    for each in managed:
        result = union(result, each.fields)
    return result
