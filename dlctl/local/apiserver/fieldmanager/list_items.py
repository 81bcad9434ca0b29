"""The identity of items in lists that merge: by their keys, or by value in a set."""

from typing import Any

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.fieldmanager.field_sets import encode_key, keys_text
from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchema


def element_of(item: Any, schema: MergeSchema) -> str:
    """Return the path element of an item; empty if it has none of the keys."""
    if not schema.keys:
        return f"v:{encode_key(item).decode()}"
    keys = keys_of(item, schema)
    return f"k:{encode_key(keys).decode()}" if keys else ""


def keys_of(item: Any, schema: MergeSchema) -> JSON:
    """Return the keys that an item has, by itself or by default."""
    declared = schema.element.fields if schema.element else {}
    fields = item if isinstance(item, dict) else {}
    defaults = {key: declared[key].default for key in schema.keys if key in declared}
    found = {key: fields.get(key, defaults.get(key)) for key in schema.keys}
    return {key: value for key, value in found.items() if value is not None}


def by_element(items: Any, schema: MergeSchema) -> dict[str, Any]:
    """Return the items of a list by their path element."""
    found = {element_of(item, schema): item for item in items or ()}
    found.pop("", None)
    return found


def repeated_text(element: str, item: Any, schema: MergeSchema) -> str:
    return keys_text(keys_of(item, schema)) if schema.keys else f"[{element[2:]}]"
