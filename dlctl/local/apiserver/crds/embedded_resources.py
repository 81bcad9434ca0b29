"""Validation of whole resources in custom ones (``x-kubernetes-embedded-resource``)."""

from collections.abc import Iterator
from typing import Any

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.coercion import EMBEDDED, additional
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import dns_1035_label


def embedded_errors(value: Any, schema: JSON, path: str = "") -> Iterator[FieldError]:
    """Yield the type errors of embedded resources at and below the value."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_errors(item, schema.get("items", {}), f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED):
            for name in ("apiVersion", "kind"):
                yield from _type_errors(value, name, f"{path}.{name}" if path else name)
        properties, extra = schema.get("properties", {}), additional(schema)
        for key, item in value.items():
            if key in properties:
                where = f"{path}.{key}" if path else key
                yield from embedded_errors(item, properties[key], where)
            elif extra is not None:
                yield from embedded_errors(item, extra, f"{path}[{key}]")


def _type_errors(value: JSON, name: str, path: str) -> Iterator[FieldError]:
    if name not in value:
        yield FieldError.required(path)
    elif not isinstance(value[name], str):
        yield FieldError.invalid(path, value[name], "must be a string")
    elif not value[name]:
        yield FieldError.invalid(path, "", "must not be empty")
    elif name == "kind" and (complaints := dns_1035_label(value[name].lower())):
        detail = f"may have mixed case, but should otherwise match: {','.join(complaints)}"
        yield FieldError.invalid(path, value[name], detail)
