"""Whether a typed Go client decodes a pod template, by the models of the official Python client.

Knows nothing of dlctl or its tables. As in Go, unknown fields are skipped and null counts as
absent; any other value of a wrong type fails the whole list that contains the object.
"""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubernetes_asyncio.client import models

_LIST = re.compile(r"list\[(.+)\]")
_MAP = re.compile(r"dict\(str, (.+)\)")
# The generator knows neither quantities nor IntOrString.
_QUANTITIES = {
    ("V1ResourceRequirements", "limits"),
    ("V1ResourceRequirements", "requests"),
    ("V1VolumeResourceRequirements", "limits"),
    ("V1VolumeResourceRequirements", "requests"),
    ("V1EmptyDirVolumeSource", "sizeLimit"),
    ("V1ResourceFieldSelector", "divisor"),
    ("V1PodSpec", "overhead"),
}
# int64 instead of int32.
_LONG = {
    "activeDeadlineSeconds", "deletionGracePeriodSeconds", "expirationSeconds", "fsGroup",
    "generation", "runAsGroup", "runAsUser", "seconds", "supplementalGroups",
    "terminationGracePeriodSeconds", "tolerationSeconds",
}  # fmt: skip
_SUFFIXES = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", *"numkMGTPE"}


def undecodable(template: Any) -> list[str]:
    """Return what Go cannot decode of a PodTemplateSpec: path and type of each value."""
    return list(_model(template, "V1PodTemplateSpec", "template"))


def fields(model: str) -> dict[str, str]:
    """Return the types of a model's fields by JSON name."""
    found = getattr(models, model)
    return {found.attribute_map[name]: type_ for name, type_ in found.openapi_types.items()}


def field_type(model: str, name: str) -> str:
    """Return the Go type of a field in the notation of the tables: a list is ``[]T``."""
    return _go_type(model, name, fields(model)[name])


def _go_type(model: str, name: str, type_: str) -> str:
    if match := _LIST.fullmatch(type_):
        return f"[]{_go_type(model, name, match[1])}"
    if match := _MAP.fullmatch(type_):
        return f"{{}}{_go_type(model, name, match[1])}"
    if type_ == "str":
        return "quantity" if (model, name) in _QUANTITIES else "str"
    if type_ == "int":
        return "int64" if name in _LONG else "int32"
    if type_ == "object":
        return "any" if name == "fieldsV1" else "intstr"
    return {"datetime": "time"}.get(type_, type_)


def _model(value: Any, model: str, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path} is no object"
        return
    known = fields(model)
    for key, item in value.items():
        if key in known:
            yield from _typed(item, field_type(model, key), f"{path}.{key}")


def _typed(value: Any, type_: str, path: str) -> Iterator[str]:
    if value is None:
        return
    if type_.startswith(("[]", "{}")):
        if not isinstance(value, list if type_[0] == "[" else dict):
            yield f"{path} is no {type_}"
            return
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from _typed(item, type_[2:], f"{path}[{key}]")
    elif hasattr(models, type_):
        yield from _model(value, type_, path)
    elif not _SCALARS[type_](value):
        yield f"{path} is no {type_}"


def _is_integer(value: Any, bits: int) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_quantity(value: Any) -> bool:
    """Check a quantity as resource.ParseQuantity does, in Go's order: sign, digits, suffix."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return True
    if not isinstance(value, str):
        return False
    number = value[1:] if value[:1] in ("+", "-") else value
    digits = re.match(r"[0-9]*(\.[0-9]*)?", number, re.ASCII)
    assert digits is not None
    suffix = number[digits.end() :]
    exponent = suffix[:1] in ("e", "E") and re.fullmatch(r"[+-]?[0-9]+", suffix[1:], re.ASCII)
    has_digit = any(character.isdigit() for character in digits[0])
    return has_digit and (suffix in _SUFFIXES or bool(exponent))


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"\S{10}T\S{8}\S+", value):
        return False
    try:
        return datetime.datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_SCALARS: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int32": lambda value: _is_integer(value, 32),
    "int64": lambda value: _is_integer(value, 64),
    "intstr": lambda value: isinstance(value, str) or _is_integer(value, 32),
    "quantity": _is_quantity,
    "time": _is_time,
    "any": lambda value: True,
}
