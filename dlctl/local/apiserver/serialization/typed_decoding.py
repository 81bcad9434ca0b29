"""Decodes built-in resources as a typed server does.

Drops unknown and empty fields, and writes quantities in canonical form; a value of the wrong type
is a bad request. Whether a value is valid is not decided here.
"""

import base64
from typing import Any, Final

import attrs

from dlctl.api.core_types.type_tables import Field, TypeDefinition
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.quantities import QuantityError, canonicalize
from dlctl.local.apiserver import resource_traits
from dlctl.local.apiserver.schemas.validation import type_name
from dlctl.local.apiserver.serialization.builtin_types import ANY_JSON, SCHEMA_OR_BOOL, kinds
from dlctl.local.apiserver.serialization.decoding_errors import (
    base64_problem,
    cannot_handle,
    wrong_type,
)
from dlctl.local.apiserver.serialization.times import time_problem

_DROPPED: Final = object()
_GO_NAMES: Final = {
    "str": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "float": "float64",
    "time": "string",
    "microtime": "string",
    "bytes": "[]uint8",
    "any": "v1.JSON",
}
_JSON_TYPES: Final = {
    "str": ("string",),
    "bool": ("boolean",),
    "int32": ("integer",),
    "int64": ("integer",),
    "float": ("integer", "number"),
    "time": ("string",),
    "microtime": ("string",),
    "bytes": ("string",),
    "intstr": ("integer", "string"),
    "quantity": ("integer", "number", "string"),
}
# The first number that is too large.
_INTEGER_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
# Lists whose Go type has a name.
_GO_LISTS: Final = {"ValidationRule": "v1.ValidationRules"}
_GO_JSON: Final = {"boolean": "bool", "integer": "number"}


@attrs.define
class TypedDecoder:
    """One pass over one object; ``unknown`` collects the paths of dropped fields."""

    resource: Resource
    unknown: list[str] = attrs.field(factory=list)

    def decode(self, obj: JSON) -> JSON:
        """Return a new object with only the fields of its kind; metadata is taken as it is."""
        kind = kinds()[self.resource.kind]
        meta = {key: obj[key] for key in ("kind", "apiVersion", "metadata") if key in obj}
        rest = {key: value for key, value in obj.items() if key not in meta}
        return meta | self._struct(rest, kind, "", "")

    def metadata(self, value: Any) -> JSON:
        """Return metadata with the fields that every kind has."""
        built_in = resource_traits.is_built_in(self.resource)
        if value is None:
            return {}
        if not isinstance(value, dict):
            if not built_in:
                raise cannot_handle(self.resource, wrong_type(value, "v1.ObjectMeta"))
            raise self._mismatch(value, f"{self.resource.kind}.metadata", "v1.ObjectMeta")
        go_path = "metadata" if built_in else ""
        result = self._struct(value, kinds()["ObjectMeta"], "metadata", go_path)
        result.pop("selfLink", None)
        # An empty list resets the managers.
        return result | ({"managedFields": []} if value.get("managedFields") == [] else {})

    def _struct(self, value: JSON, kind: TypeDefinition, path: str, go_path: str) -> JSON:
        result = {}
        for key, item in value.items():
            field = kind.fields.get(key)
            if type(item) is str and field and field.type == "str" and not field.shape:
                # Most values are strings, which cannot be wrong here and need no path.
                if item or field.keeps_empty:
                    result[key] = item
                continue
            where = f"{path}.{key}" if path else key
            if field is None:
                self.unknown.append(where)
                continue
            go_field = f"{go_path}.{key}" if go_path else key
            owner = f"{kind.name}.{go_field}"
            decoded = self._value(item, field, field.shape, where, (owner, go_field))
            if decoded is not _DROPPED:
                result[key] = decoded
        return result

    def _value(
        self, value: Any, field: Field, shape: tuple[str, ...], path: str, go: tuple[str, str]
    ) -> Any:
        if value is None:
            return _DROPPED
        if not shape:
            return self._single(value, field, path, go)
        wanted = list if shape[0] == "[]" else dict
        if not isinstance(value, wanted):
            raise self._mismatch(value, go[0], _go_type(field, shape))
        if not value:
            # As encoding with omitempty does; required fields stay.
            return value if field.required else _DROPPED
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        items = [
            (key, self._value(item, field, shape[1:], f"{path}[{key}]", go)) for key, item in pairs
        ]
        filled = [(key, _null(field) if item is _DROPPED else item) for key, item in items]
        return dict(filled) if isinstance(value, dict) else [item for _, item in filled]

    def _single(self, value: Any, field: Field, path: str, go: tuple[str, str]) -> Any:
        if field.type in ANY_JSON:
            return self._any(value, field, path, go)
        if (kind := kinds().get(field.type)) is not None:
            if not isinstance(value, dict):
                raise self._mismatch(value, go[0], f"v1.{kind.name}")
            return self._struct(value, kind, path, go[1])
        if type_name(value) not in _JSON_TYPES[field.type]:
            raise self._mismatch(value, go[0], _GO_NAMES.get(field.type, field.type))
        limit = _INTEGER_LIMITS.get(field.type)
        if limit is not None and not -limit <= value < limit:
            raise self._unfit(f"number {value}", go[0], _GO_NAMES[field.type])
        if problem := _text_problem(value, field.type):
            raise cannot_handle(self.resource, problem)
        if field.type == "bytes":
            # It may have had several lines.
            return base64.b64encode(base64.b64decode(value)).decode()
        if field.type == "quantity":
            try:
                return canonicalize(value)
            except QuantityError as error:
                raise cannot_handle(self.resource, str(error)) from None
        return value

    def _any(self, value: Any, field: Field, path: str, go: tuple[str, str]) -> Any:
        if field.type == "any":
            return value
        # A second decoder in the real server too, which warns of no unknown fields.
        nested = TypedDecoder(self.resource)
        if isinstance(value, dict):
            return nested._struct(value, kinds()["JSONSchemaProps"], path, go[1])
        if field.type == SCHEMA_OR_BOOL:
            if isinstance(value, bool):
                return value
            raise cannot_handle(self.resource, "boolean or JSON schema expected")
        if isinstance(value, list):
            schemas = Field(field.name, ("[]",), "JSONSchemaProps")
            return nested._value(value, schemas, schemas.shape, path, go)
        return _DROPPED

    def _mismatch(self, value: Any, owner: str, go_type: str) -> Exception:
        actual = type_name(value)
        return self._unfit(_GO_JSON.get(actual, actual), owner, go_type)

    def _unfit(self, what: str, owner: str, go_type: str) -> Exception:
        problem = f"json: cannot unmarshal {what} into Go struct field {owner} of type {go_type}"
        return cannot_handle(self.resource, problem)


def _text_problem(value: Any, type_: str) -> str:
    match type_:
        case "bytes":
            return base64_problem(value)
        case "time" | "microtime":
            return time_problem(value, type_)
        case _:
            return ""


def _null(field: Field) -> Any:
    """Return what Go reads null as in a list or map."""
    if field.type in kinds():
        return {}
    return {"any": None, "quantity": "0"}.get(field.type, "")


def decode_metadata(obj: JSON, resource: Resource) -> JSON:
    """Return the object with well-typed metadata of known fields; raise if it has a wrong type."""
    return {**obj, "metadata": TypedDecoder(resource).metadata(obj.get("metadata"))}


def _go_type(field: Field, shape: tuple[str, ...]) -> str:
    if shape == ("[]",) and field.type in _GO_LISTS:
        return _GO_LISTS[field.type]
    inner = f"v1.{field.type}" if field.type in kinds() else _GO_NAMES.get(field.type, field.type)
    return "".join("[]" if part == "[]" else "map[string]" for part in shape) + inner
