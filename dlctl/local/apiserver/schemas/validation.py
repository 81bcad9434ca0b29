"""Validation of a value by a structural schema, with the messages of kube-apiserver.

Pruning and defaults come before. CEL rules are in ``cel_rules``, uniqueness of list items in
``list_types``.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.hashable_json import hashable
from dlctl.local.apiserver.schemas.coercion import additional
from dlctl.local.apiserver.schemas.formats import CHECKS
from dlctl.local.apiserver.schemas.patterns import matches
from dlctl.local.apiserver.status import FieldError

# Path of the whole object: the real server prints its empty path like this.
ROOT: Final = "<nil>"
# Instead of None, which is a value.
ABSENT: Final = object()


def validate(value: Any, schema: JSON, *, old: Any = ABSENT, under: str = "") -> list[FieldError]:
    """Return the violations of the schema; parts that equal their old value are accepted.

    ``under`` is prepended to the field of each error, but not to its message, as the real server
    does for a status that is written alone.
    """
    return list(_Validation(under).errors(value, schema, "", old))


def type_name(value: Any) -> str:
    """Return the JSON schema type of a decoded value."""
    if isinstance(value, bool):
        return "boolean"
    for types, name in _TYPES:
        if isinstance(value, types):
            return name
    return "null"


def old_field(old: Any, name: str) -> Any:
    """Return the old value of a field of an object; ABSENT if there is none."""
    return old.get(name, ABSENT) if isinstance(old, dict) else ABSENT


def old_items(old: Any, items: Sequence[Any], schema: JSON) -> Sequence[Any]:
    """Return the old counterpart of each item of a list; ABSENT where there is none."""
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return [ABSENT] * len(items)
    keys = schema.get("x-kubernetes-list-map-keys", ())

    def keys_of(item: JSON) -> Hashable:
        return tuple(hashable(item.get(key)) for key in keys)

    # The first of several.
    known = {keys_of(item): item for item in reversed(old) if isinstance(item, dict)}
    return [known.get(keys_of(i), ABSENT) if isinstance(i, dict) else ABSENT for i in items]


def is_unchanged(value: Any, old: Any, schema: JSON) -> bool:
    """Return whether a value equals its old one.

    As on the real server, an object that holds fields without a schema is always a changed one.
    """
    return type(old) is type(value) and old == value and _is_covered(value, schema)


def _is_covered(value: Any, schema: JSON) -> bool:
    if isinstance(value, dict):
        properties, extra = schema.get("properties", {}), additional(schema)
        return all(
            (field := properties.get(key, extra)) is not None and _is_covered(item, field)
            for key, item in value.items()
        )
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") == "map":
        return all(_is_covered(item, schema["items"]) for item in value)
    return True


def _json(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else msgspec.json.encode(value).decode()


def number(value: float) -> str:
    """Return a number as messages print it: 1.0 as ``1``."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return str(value)


_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)
# Of the types of numbers, as the real server reads them.
_FORMATS: Final = {"integer": "int64", "number": "double"}
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
# Beyond it, floats leave out integers: none is taken for one.
_MAX_WHOLE_FLOAT: Final = 2.0**53 - 1


@attrs.frozen
class _Validation:
    under: str

    def errors(
        self, value: Any, schema: JSON, path: str, old: Any = ABSENT
    ) -> Iterator[FieldError]:
        if is_unchanged(value, old, schema):
            return
        wanted = _wanted_types(schema)
        if value is None:
            if wanted and not schema.get("nullable"):
                yield self._wrong_type(path, wanted, "null")
            yield from self._enum(value, schema, path)
            return
        actual = type_name(value)
        if actual == "integer" and value not in _INT64:
            # Read as a float.
            actual = "number"
        if wanted and not _is_of(value, actual, wanted):
            yield from self._mismatch(path, schema, actual)
        yield from self._combined(value, schema, path, old)
        if isinstance(value, str):
            yield from self._string(value, schema, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from self._number(value, schema, path)
        elif isinstance(value, list):
            yield from self._array(value, schema, path, old)
        yield from self._enum(value, schema, path)
        if isinstance(value, dict):
            yield from self._object(value, schema, path, old)

    def _field(self, path: str) -> str:
        return ".".join(part for part in (self.under, path.removeprefix(".")) if part) or ROOT

    def _invalid(self, path: str, value: Any, detail: str) -> FieldError:
        return FieldError.invalid(self._field(path), value, f"{path} in body {detail}")

    def _mismatch(self, path: str, schema: JSON, actual: str) -> Iterator[FieldError]:
        if schema.get("type") != "string" or schema.get("format") not in CHECKS:
            yield self._wrong_type(path, _wanted_types(schema), actual)
        elif actual != "array":
            # Bug-compatible: a list passes as a string with a format, and others are named oddly.
            yield self._wrong_type(path, [schema["format"]], _FORMATS.get(actual, ""))

    def _wrong_type(self, path: str, wanted: list[str], shown: str) -> FieldError:
        detail = f'{path} in body must be of type {",".join(wanted)}: "{shown}"'
        return FieldError.wrong_type(self._field(path), shown, detail)

    def _whole(self, path: str, detail: str) -> FieldError:
        return FieldError.invalid(self.under or ROOT, "", f'"{path}" {detail}')

    def _combined(self, value: Any, schema: JSON, path: str, old: Any) -> Iterator[FieldError]:
        if any_of := schema.get("anyOf"):
            failed = [list(self.errors(value, each, path, old)) for each in any_of]
            if all(failed):
                yield self._whole(path, "must validate at least one schema (anyOf)")
                yield from min(failed, key=len)
        if one_of := schema.get("oneOf"):
            failed = [list(self.errors(value, each, path, old)) for each in one_of]
            count = sum(not errors for errors in failed)
            if count != 1:
                found = f"Found {count} valid alternatives" if count else "Found none valid"
                yield self._whole(path, f"must validate one and only one schema (oneOf). {found}")
            if not count:
                yield from min(failed, key=len)
        if all_of := schema.get("allOf"):
            failed = [list(self.errors(value, each, path, old)) for each in all_of]
            for errors in failed:
                yield from errors
            if any(failed):
                none = ". None validated" if all(failed) else ""
                yield self._whole(path, f"must validate all the schemas (allOf){none}")
        if "not" in schema and not list(self.errors(value, schema["not"], path)):
            yield self._whole(path, "must not validate the schema (not)")

    def _enum(self, value: Any, schema: JSON, path: str) -> Iterator[FieldError]:
        allowed = schema.get("enum") or ()
        # As on the real server, null is never one of them.
        found = value is not None and any(
            value == item and _same_kind(value, item) for item in allowed
        )
        if found or not allowed:
            return
        names = [item if isinstance(item, str) else _json(item) for item in allowed]
        yield FieldError.unsupported(self._field(path), value, names)

    def _string(self, value: str, schema: JSON, path: str) -> Iterator[FieldError]:
        maximum, minimum, pattern = (schema.get(k) for k in ("maxLength", "minLength", "pattern"))
        if maximum is not None and len(value) > maximum:
            yield FieldError.too_long(self._field(path), maximum)
        elif minimum is not None and len(value) < minimum:
            yield self._invalid(path, value, f"should be at least {minimum} chars long")
        elif pattern and not matches(value, pattern):
            yield self._invalid(path, value, f"should match '{pattern}'")
        check = CHECKS.get(schema.get("format", ""))
        if check is not None and not check(value):
            yield self._wrong_type(path, [schema["format"]], value)

    def _number(self, value: float, schema: JSON, path: str) -> Iterator[FieldError]:
        if schema.get("type") == "integer":
            format_ = schema.get("format", "")
            allowed = _INT32 if format_ == "int32" else _INT64
            if value != int(value) or int(value) not in allowed:
                kind = f"with format {format_}" if format_ else "(default format)"
                detail = f"Checked value must be of type integer {kind} in {path}"
                yield FieldError.invalid(self.under or ROOT, "", detail)
        factor, minimum, maximum = (schema.get(k) for k in ("multipleOf", "minimum", "maximum"))
        if factor is not None and factor <= 0:
            detail = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
            yield FieldError.invalid(self._field(path), factor, detail)
        elif factor is not None and value % factor:
            yield self._invalid(path, value, f"should be a multiple of {number(factor)}")
        if minimum is not None:
            strict = schema.get("exclusiveMinimum")
            if value < minimum or (strict and value == minimum):
                words = "greater than" if strict else "greater than or equal to"
                yield self._invalid(path, value, f"should be {words} {number(minimum)}")
        if maximum is not None:
            strict = schema.get("exclusiveMaximum")
            if value > maximum or (strict and value == maximum):
                words = "less than" if strict else "less than or equal to"
                yield self._invalid(path, value, f"should be {words} {number(maximum)}")

    def _array(self, value: list[Any], schema: JSON, path: str, old: Any) -> Iterator[FieldError]:
        if "items" in schema:
            before = old_items(old, value, schema)
            for index, item in enumerate(value):
                where = f"{path}[{index}]"
                yield from self.errors(item, schema["items"], where, before[index])
        yield from self._size(path, len(value), schema, "Items")

    def _object(self, value: JSON, schema: JSON, path: str, old: Any) -> Iterator[FieldError]:
        yield from self._size(path, len(value), schema, "Properties")
        properties = schema.get("properties", {})
        extra = additional(schema)
        for key in sorted(value):
            field = properties.get(key, extra)
            if field is not None:
                # Bug-compatible: at the root, the path of an unlisted field starts with a dot.
                where = key if key in properties and not path else f"{path}.{key}"
                before = old_field(old, key)
                yield from self.errors(value[key], field, where, before)
        for key in schema.get("required", ()):
            if key not in value:
                yield FieldError.required(self._field(f"{path}.{key}"))

    def _size(self, path: str, count: int, schema: JSON, unit: str) -> Iterator[FieldError]:
        minimum, maximum = schema.get(f"min{unit}"), schema.get(f"max{unit}")
        if minimum is not None and count < minimum:
            yield self._invalid(path, count, f"should have at least {minimum} {unit.lower()}")
        if maximum is not None and count > maximum:
            items = "item" if maximum == 1 else "items"
            message = f"Too many: {count}: must have at most {maximum} {items}"
            yield FieldError(self._field(path), message, "FieldValueTooMany")


def _wanted_types(schema: JSON) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if "type" in schema else []


def _is_of(value: Any, actual: str, wanted: list[str]) -> bool:
    if actual in wanted:
        return True
    if actual == "integer":
        return "number" in wanted
    if actual != "number" or "integer" not in wanted:
        return False
    return abs(value) <= _MAX_WHOLE_FLOAT and float(value).is_integer()


def _same_kind(value: Any, item: Any) -> bool:
    # In Python, True equals 1.
    return isinstance(value, bool) == isinstance(item, bool)
