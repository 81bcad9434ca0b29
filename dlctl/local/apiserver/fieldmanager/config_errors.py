"""Errors in an applied configuration: the first field that its type does not allow."""

from collections.abc import Iterator
from typing import Any

import msgspec

from dlctl.local.apiserver.fieldmanager.list_items import element_of, keys_of, repeated_text
from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchema
from dlctl.local.apiserver.serialization.decoding_errors import go_value


def config_errors(value: Any, schema: MergeSchema, path: str = "") -> Iterator[str]:
    """Yield the errors of a configuration, in the words of the real server."""
    known = schema.of(value)
    if value is None:
        return
    if known.shape == "map":
        yield from _map_errors(value, known, path)
    elif known.shape == "list":
        yield from _list_errors(value, known, path)
    elif error := _scalar_error(value, known.scalar):
        yield f"{path}: {error}"


def _map_errors(value: Any, schema: MergeSchema, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{go_value(value)}}}"
        return
    for name, each in value.items():
        below = schema.field(name)
        if below is None:
            yield f"{path}.{name}: field not declared in schema"
        else:
            yield from config_errors(each, below, f"{path}.{name}")


def _list_errors(value: Any, schema: MergeSchema, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_value(value)}}}"
        return
    seen = set()
    for index, item in enumerate(value):
        if schema.keys and not keys_of(item, schema):
            names = " ".join(f'"{key}"' for key in schema.keys)
            yield (
                f"{path}: element {index}: associative list with keys has an element that omits "
                f"all key fields [{names}] (and doesn't have default values for any key fields)"
            )
            continue
        element = element_of(item, schema)
        if element in seen:
            yield f"{path}: duplicate entries for key {repeated_text(element, item, schema)}"
        seen.add(element)
        if schema.element is not None:
            where = f"{path}{repeated_text(element, item, schema)}"
            yield from config_errors(item, schema.element, where)


def _scalar_error(value: Any, scalar: str) -> str:
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got {_go_value(value)}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got {_go_value(value)}"
    if scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        kinds = {str: "string", bool: "bool", dict: "map[string]interface {}"}
        return f"expected numeric (int or float), got {kinds.get(type(value), '[]interface {}')}"
    return ""


def _go_value(value: Any) -> str:
    shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"&value.valueUnstructured{{Value:{shown}}}"
