"""Uniqueness of items in lists of type set or map."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.coercion import additional
from dlctl.local.apiserver.status import FieldError


def duplicates(value: Any, schema: JSON, path: str = "") -> Iterator[FieldError]:
    """Yield an error for each item that repeats an earlier one, at its first repetition."""
    if isinstance(value, list):
        yield from _repeated(value, schema, path)
        for index, item in enumerate(value):
            yield from duplicates(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for key, item in value.items():
            if key in properties:
                where = f"{path}.{key}" if path else key
                yield from duplicates(item, properties[key], where)
            elif (extra := additional(schema)) is not None:
                yield from duplicates(item, extra, f"{path}[{key}]")


def _repeated(value: list[Any], schema: JSON, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        yield from _first_repeats(value, path)
    elif kind == "map":
        wrong = [i for i, item in enumerate(value) if not isinstance(item, dict | None)]
        if wrong:
            detail = "must be an object for an array of list-type map"
            yield FieldError.invalid(f"{path}[{wrong[0]}]", value[wrong[0]], detail)
            return
        keys = schema.get("x-kubernetes-list-map-keys", ())
        yield from _first_repeats([_identity(item or {}, keys) for item in value], path)


def _identity(item: JSON, keys: Sequence[str]) -> JSON:
    return {key: item[key] for key in keys if key in item}


def _first_repeats(items: Sequence[Any], path: str) -> Iterator[FieldError]:
    count: dict[bytes, int] = {}
    for index, item in enumerate(items):
        identity = msgspec.json.encode(item, order="deterministic")
        count[identity] = count.get(identity, 0) + 1
        if count[identity] == 2:
            yield FieldError.duplicate(f"{path}[{index}]", item)
