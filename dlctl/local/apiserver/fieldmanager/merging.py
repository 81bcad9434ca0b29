"""Merging an applied configuration into an object, and removing items from one.

Pure functions of JSON values; what to remove is decided in ``managers``.
"""

from collections import deque
from typing import Any

from dlctl.local.apiserver.fieldmanager.field_sets import FieldSet, children_of, is_member, node
from dlctl.local.apiserver.fieldmanager.list_items import by_element, element_of
from dlctl.local.apiserver.fieldmanager.merge_schemas import LEAF, MergeSchema


def merge(live: Any, config: Any, schema: MergeSchema | None) -> Any:
    """Return the live value with all that the configuration sets."""
    known = (schema or LEAF).of(config)
    if known.shape == "map" and isinstance(live, dict) and isinstance(config, dict | None):
        result = dict(live)
        for name, value in (config or {}).items():
            result[name] = merge(live.get(name), value, known.field(name))
        return result
    if known.shape == "list" and isinstance(live, list) and isinstance(config, list | None):
        return _merged_list(live, config or [], known)
    return config


def _merged_list(live: list[Any], config: list[Any], schema: MergeSchema) -> list[Any]:
    """Return the items of both: in the order of the configuration, others where they were."""
    before, wanted = by_element(live, schema), by_element(config, schema)
    result: dict[str, Any] = {}
    old, new = deque(before), deque(wanted)
    while old or new:
        if old and old[0] in result:
            old.popleft()
        elif old and old[0] not in wanted:
            element = old.popleft()
            result[element] = before[element]
        else:
            element = new.popleft()
            result[element] = (
                merge(before[element], wanted[element], schema.element)
                if element in before
                else wanted[element]
            )
    return list(result.values())


def remove_items(value: Any, removed: FieldSet, schema: MergeSchema | None) -> Any:
    """Return the value without the fields and items of a set; None if nothing is left of it."""
    known = (schema or LEAF).of(value)
    if known.shape == "map" and isinstance(value, dict):
        result = {}
        for name, each in value.items():
            entry = removed.get(f"f:{name}")
            if entry is None:
                result[name] = each
            elif not is_member(entry):
                result[name] = remove_items(each, entry, known.field(name))
        return result or None
    if known.shape == "list" and isinstance(value, list):
        items = []
        for each in value:
            entry = removed.get(element_of(each, known))
            if entry is None:
                items.append(each)
            elif not is_member(entry):
                items.append(remove_items(each, entry, known.element))
        return items or None
    return value


def field_set(config: Any, schema: MergeSchema) -> FieldSet:
    """Return the fields that a configuration sets."""
    result: FieldSet = {}
    if isinstance(config, dict):
        for name, value in config.items():
            below = schema.field(name) or LEAF
            undeclared = name not in schema.fields
            _add(result, f"f:{name}", value, below, member=undeclared or value in ({}, None))
    elif isinstance(config, list):
        for item in config:
            _add(result, element_of(item, schema), item, schema.element or LEAF, member=True)
    return result


def _add(fields: FieldSet, element: str, value: Any, schema: MergeSchema, *, member: bool) -> None:
    known = schema.of(value)
    below = {} if known.shape == "leaf" else field_set(value, known)
    entry = node(below, member=member or known.shape == "leaf")
    if entry is not None:
        fields[element] = entry


def with_named_parents(fields: FieldSet, schema: MergeSchema | None) -> FieldSet:
    """Return the set with the declared fields that contain its paths."""
    known = schema or LEAF
    if known.shape == "open":
        known = known.of({})
    result = {}
    for element, entry in fields.items():
        name = element.removeprefix("f:")
        named = element.startswith("f:") and name in known.fields
        below = known.field(name) if element.startswith("f:") else known.element
        children = with_named_parents(children_of(entry), below)
        found = node(children, member=named or is_member(entry))
        result[element] = {} if found is None else found
    return result
