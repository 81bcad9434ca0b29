"""Coerces a decoded object to its structural schema: pruning, nulls, defaults.

The functions work in place, so pass a copy. They do not validate; ``validation`` does.
"""

import copy
from typing import Any, Final

from dlctl.api.json_types import JSON

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"


def prune(obj: JSON, schema: JSON) -> list[str]:
    """Drop the fields of a resource that its schema does not know; return their paths.

    The type and metadata of the resource stay, whatever the schema says.
    """
    unknown: list[str] = []
    _prune(obj, {**schema, EMBEDDED: True}, "", unknown)
    return sorted(unknown)


def drop_nulls(value: Any, schema: JSON | None) -> None:
    """Drop null fields that are not nullable and have no default."""
    if isinstance(value, dict):
        for key in list(value):
            field = _field_schema(schema, key)
            if value[key] is None and _drops_null(field):
                del value[key]
            else:
                drop_nulls(value[key], field)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, (schema or {}).get("items"))


def fill_defaults(value: Any, schema: JSON | None) -> None:
    """Set the schema's defaults where a field is absent, or null but not nullable."""
    if schema is None:
        return
    if isinstance(value, dict):
        _default_fields(value, schema)
        for key, item in value.items():
            fill_defaults(item, _field_schema(schema, key))
    elif isinstance(value, list):
        items = schema.get("items")
        for index, item in enumerate(value):
            if item is None and items is not None and _takes_default(items):
                value[index] = copy.deepcopy(items["default"])
            fill_defaults(value[index], items)


def _default_fields(value: JSON, schema: JSON) -> None:
    for name, field in schema.get("properties", {}).items():
        if "default" in field and (
            name not in value or (value[name] is None and not field.get("nullable"))
        ):
            value[name] = copy.deepcopy(field["default"])
    extra = additional(schema)
    if extra is not None and _takes_default(extra):
        for key in value:
            if value[key] is None and key not in schema.get("properties", {}):
                value[key] = copy.deepcopy(extra["default"])


def additional(schema: JSON | None) -> Any:
    """Return the schema of unlisted fields, or None if there is none."""
    extra = (schema or {}).get("additionalProperties")
    return extra if isinstance(extra, dict) else None


def _field_schema(schema: JSON | None, key: str) -> Any:
    field = (schema or {}).get("properties", {}).get(key)
    return field if field is not None else additional(schema)


def _drops_null(field: JSON | None) -> bool:
    return field is not None and not field.get("nullable") and field.get("default") is None


def _takes_default(field: JSON) -> bool:
    return not field.get("nullable") and "default" in field


def _prune(value: Any, schema: JSON | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, _item_schema(schema), f"{path}[{index}]", unknown)
    elif isinstance(value, dict):
        for key in list(value):
            _prune_field(value, key, schema or {}, path, unknown)


def _prune_field(value: JSON, key: str, schema: JSON, path: str, unknown: list[str]) -> None:
    if key in META_FIELDS and schema.get(EMBEDDED):
        return
    where = f"{path}.{key}" if path else key
    if key in schema.get("properties", {}):
        _prune(value[key], schema["properties"][key], where, unknown)
    elif schema.get("additionalProperties"):
        _prune(value[key], additional(schema) or {PRESERVE: True}, where, unknown)
    elif not schema.get(PRESERVE):
        unknown.append(where)
        del value[key]


def _item_schema(schema: JSON | None) -> JSON | None:
    items = (schema or {}).get("items")
    if items is None and (schema or {}).get(PRESERVE):
        # Below a preserving field without its own schema, everything is kept.
        return {PRESERVE: True}
    return items
