"""Ownership of fields after a write: an update takes what it changes, an apply what it sets.

Both return new values; nothing is stored here.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver import status
from dlctl.local.apiserver.fieldmanager import managers
from dlctl.local.apiserver.fieldmanager.comparison import compare
from dlctl.local.apiserver.fieldmanager.config_errors import config_errors
from dlctl.local.apiserver.fieldmanager.field_sets import (
    FieldSet,
    difference,
    intersection,
    path_text,
    paths,
    union,
    without,
)
from dlctl.local.apiserver.fieldmanager.managers import (
    UPDATE,
    Managed,
    ManagedFields,
    ManagerIdentifier,
)
from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchema
from dlctl.local.apiserver.fieldmanager.merging import (
    field_set,
    merge,
    remove_items,
    with_named_parents,
)
from dlctl.local.apiserver.serialization.decoding_errors import go_kind
from dlctl.local.apiserver.status import StatusError

# The owner of fields that were there before anybody was tracked.
_FIRST: Final = "before-first-apply"
# Set by the server, or the same in all versions of an object.
_UNOWNED: Final = ("apiVersion", "kind")
_UNOWNED_METADATA: Final = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
_STRIPPED: Final[FieldSet] = {f"f:{name}": {} for name in _UNOWNED} | {
    "f:metadata": {f"f:{name}": {} for name in _UNOWNED_METADATA}
}
_METADATA: Final[FieldSet] = {"f:metadata": {}}


@attrs.frozen
class Tracker:
    """The rules for one endpoint of one resource."""

    schema: MergeSchema
    # The fields that this endpoint does not write.
    ignored: FieldSet
    # An object of the kind as the real server has it before its first write.
    blank: JSON

    def after_update(
        self, managed: Managed, old: JSON, new: JSON, manager: ManagerIdentifier, now: str
    ) -> Managed:
        """Return the managers once somebody has changed an object."""
        found = compare(self._whole(old), self._whole(new), self.schema)
        changed = without(found.changed, self.ignored)
        removed = without(found.removed, self.ignored)
        previous = managers.find(managed, manager)
        result = managers.release(managed, union(changed, removed))
        own = _owned(changed)
        if not own:
            return result
        kept = difference(previous.fields, removed) if previous else {}
        return managers.replace(result, ManagedFields(manager, union(kept, own), now))

    def before_first_apply(self, live: JSON, api_version: str, now: str) -> Managed:
        """Return a manager for all fields of an object that has none."""
        manager = ManagerIdentifier(_FIRST, UPDATE, api_version)
        return self.after_update((), {}, live, manager, now)

    def after_apply(
        self,
        managed: Managed,
        live: JSON,
        config: JSON,
        manager: ManagerIdentifier,
        now: str,
        *,
        allowed: FieldSet | None,
    ) -> tuple[JSON, Managed]:
        """Return the object with a configuration applied, and its managers.

        :raises StatusError: if other managers own what it would change, except for the fields in
            ``allowed``; None allows all.
        """
        for error in config_errors(config, self.schema):
            raise StatusError(500, "", _untyped(config, error))
        own = without(_owned(field_set(config, self.schema)), self.ignored)
        previous = managers.find(managed, manager)
        managed = managers.replace(managed, ManagedFields(manager, own, now))
        merged: JSON = merge(live, config, self.schema)
        if previous is not None:
            merged = self._pruned(merged, previous.fields, managed)
        found = compare(self._whole(live), self._whole(merged), self.schema)
        others = [each for each in managed if each.manager.identity != manager.identity]
        changed = without(found.changed, self.ignored)
        if allowed is not None:
            _check_conflicts(others, difference(changed, allowed))
        result = managers.release(others, union(changed, without(found.removed, self.ignored)))
        time = now
        if found.is_same:
            time = previous.time if previous else ""
        return merged, managers.replace(result, ManagedFields(manager, own, time))

    def unchanged_fields(self, config: JSON, live: JSON) -> FieldSet:
        """Return the fields of a configuration that an object still has as they are there."""
        found = compare(config, live, self.schema)
        different = union(found.changed, found.removed)
        return difference(field_set(config, self.schema), different)

    def _pruned(self, merged: JSON, previous: FieldSet, managed: Managed) -> JSON:
        """Remove what the manager has set before and nobody sets any more."""
        before = with_named_parents(previous, self.schema)
        # Every object has metadata, whoever owns fields of it.
        fields = union(managers.all_fields(managed), _METADATA)
        still = with_named_parents(fields, self.schema)
        result: JSON = remove_items(merged, difference(before, still), self.schema)
        return result

    def _whole(self, obj: JSON) -> JSON:
        """Return the object with the fields that are never absent in the real server."""
        return _filled(obj, self.blank)


def _filled(obj: JSON, blank: JSON) -> JSON:
    result = dict(obj)
    for name, value in blank.items():
        present = result.get(name)
        if name not in result:
            result[name] = value
        elif isinstance(present, dict) and isinstance(value, dict):
            result[name] = _filled(present, value)
    return result


def _owned(fields: FieldSet) -> FieldSet:
    """Return the fields that have owners, of a set of any."""
    return difference(without(fields, _STRIPPED), _METADATA)


def _check_conflicts(managed: Managed, changed: FieldSet) -> None:
    found: Sequence[tuple[ManagerIdentifier, str]] = [
        (each.manager, path_text(path))
        for each in sorted(managed, key=lambda each: each.manager.name)
        for path in paths(intersection(each.fields, changed))
    ]
    if found:
        raise status.apply_conflict([(manager.text(), path) for manager, path in found])


def _untyped(config: JSON, error: str) -> str:
    meta = config.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    kind = go_kind(config.get("apiVersion", ""), config.get("kind", ""))
    return f"failed to create typed patch object ({name}; {kind}): {error}"
