"""Values as rules see them: only what the schema declares, under names valid in CEL.

The views are copies, made for one evaluation and never stored.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.coercion import EMBEDDED, additional

_RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package "
    "namespace return var void while".split()
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOLS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
# No rule looks deeper than this into undeclared values.
_MAX_DEPTH: Final = 50
_META: Final[JSON] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
_TYPE: Final[JSON] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": _META,
}


def self_value(value: Any, schema: JSON, *, root: bool = False) -> Any:
    """Return the value as ``self``; the root and embedded resources include name and kind."""
    if isinstance(value, dict):
        return _object(value, schema, root=root)
    if isinstance(value, list):
        items = schema.get("items")
        return _truncated(value) if items is None else [self_value(item, items) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def unreadable_numbers(value: Any, schema: JSON) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield where the value has a number such as 3.0 for an integer, and the error of reading it.

    The place is the names of the fields on the way, as rules write them.
    """
    if isinstance(value, dict):
        properties, extra = schema.get("properties", {}), additional(schema)
        for key, item in value.items():
            known = key in properties
            field = properties[key] if known else extra or {}
            names = (escape_name(key) or "",) if known else ()
            for below, problem in unreadable_numbers(item, field):
                yield (*names, *below), problem
    elif isinstance(value, list):
        for item in value:
            yield from unreadable_numbers(item, schema.get("items", {}))
    elif isinstance(value, float):
        if schema.get("x-kubernetes-int-or-string"):
            problem = "expected XIntOrString value to be either a string or integer"
            yield (), f"invalid data, {problem}"
        elif schema.get("type") == "integer":
            yield (), "invalid data, expected int, got float64"


def _object(value: JSON, schema: JSON, *, root: bool) -> JSON:
    properties = schema.get("properties", {})
    extra = additional(schema)
    if extra is not None:
        return {key: self_value(item, extra) for key, item in value.items()}
    if root or schema.get(EMBEDDED):
        properties = {**properties, **_TYPE}
    elif not properties:
        clipped: JSON = _truncated(value)
        return clipped
    return {
        escaped: self_value(value[name], field)
        for name, field in properties.items()
        if name in value and (escaped := escape_name(name)) is not None
    }


def _truncated(value: Any, levels: int = _MAX_DEPTH) -> Any:
    """Return an undeclared value with null where it nests too deep for the CEL library."""
    if isinstance(value, dict):
        return {k: _truncated(item, levels - 1) for k, item in value.items()} if levels else None
    if isinstance(value, list):
        return [_truncated(item, levels - 1) for item in value] if levels else None
    return value


def escape_name(name: str) -> str | None:
    """Return the field's name as rules write it; None if there is no way to."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = re.sub(r"__|[.\-/]", lambda match: _SYMBOLS[match[0]], name)
    return escaped if _IDENTIFIER.fullmatch(escaped) else None
