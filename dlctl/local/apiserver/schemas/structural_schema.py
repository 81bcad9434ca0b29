"""Validation of structural schemas: types everywhere, and value checks without structure.

CEL rules are compiled once here, so that an invalid one rejects the CRD.
"""

from collections.abc import Iterator
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas import cel_rules
from dlctl.local.apiserver.schemas.cel_environment import CelError, Expression
from dlctl.local.apiserver.schemas.coercion import EMBEDDED, PRESERVE, fill_defaults, prune
from dlctl.local.apiserver.schemas.patterns import malformed
from dlctl.local.apiserver.schemas.validation import validate
from dlctl.local.apiserver.status import FieldError

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
# Most of a schema: scalars with nothing that could be wrong.
_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
_PLAIN: Final = frozenset({"type", "description", "format", "nullable", "maxLength", "minimum"})
_UNSUPPORTED: Final = ("additionalItems", "definitions", "dependencies", "patternProperties", "id")
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
# Not allowed inside allOf, anyOf, oneOf and not.
_FORBIDDEN_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    _INT_OR_STRING: "must be false to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
}
_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def schema_errors(schema: JSON, path: str) -> Iterator[FieldError]:
    """Yield the errors of a version's schema."""
    kind = schema.get("type")
    if not kind:
        yield FieldError.required(f"{path}.type", "must not be empty at the root")
    elif kind != "object":
        yield FieldError.invalid(f"{path}.type", kind, "must be object at the root")
    if schema.get("additionalProperties"):
        yield FieldError.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get("nullable"):
        yield FieldError.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    yield from _node(schema, path)


def _node(schema: JSON, path: str) -> Iterator[FieldError]:
    if schema.get("type") in _SCALARS and schema.keys() <= _PLAIN:
        return
    yield from _type(schema, path)
    yield from _list_type(schema, path)
    yield from _values(schema, path)
    yield from _rules(schema, path)
    yield from _default(schema, path)
    for name, field in schema.get("properties", {}).items():
        yield from _below(field, f"{path}.properties[{name}]", "object fields")
    extra = schema.get("additionalProperties")
    if extra is not None and "properties" in schema:
        detail = "additionalProperties and properties are mutual exclusive"
        yield FieldError.forbidden(f"{path}.additionalProperties", detail)
    if isinstance(extra, dict):
        yield from _below(extra, f"{path}.additionalProperties", "object fields")
    if isinstance(schema.get("items"), dict):
        yield from _below(schema["items"], f"{path}.items", "array items")
    elif "items" in schema:
        detail = "items must be a schema object and not an array"
        yield FieldError.forbidden(f"{path}.items", detail)


def _below(schema: JSON, path: str, of: str) -> Iterator[FieldError]:
    free = schema.get(_INT_OR_STRING) or schema.get(PRESERVE)
    if not schema.get("type") and not free:
        yield FieldError.required(f"{path}.type", f"must not be empty for specified {of}")
    yield from _node(schema, path)


def _type(schema: JSON, path: str) -> Iterator[FieldError]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield FieldError.unsupported(f"{path}.type", kind, _TYPES)
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield FieldError.forbidden(f"{path}.type", detail)
    if kind == "array" and "items" not in schema:
        yield FieldError.required(f"{path}.items", "must be specified")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError.forbidden(f"{path}.uniqueItems", detail)
    for name in _UNSUPPORTED:
        if name in schema:
            yield FieldError.forbidden(f"{path}.{name}", f"{name} is not supported")
    if "$ref" in schema:
        yield FieldError.forbidden(f"{path}.$ref", "$ref is not supported")
    if schema.get(PRESERVE) is False:
        yield FieldError.invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    if schema.get(EMBEDDED) and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield FieldError.required(f"{path}.type", detail)


def _list_type(schema: JSON, path: str) -> Iterator[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys")
    if list_type is not None:
        if schema.get("type") != "array":
            detail = "must be array if x-kubernetes-list-type is specified"
            yield FieldError.invalid(f"{path}.type", schema.get("type", ""), detail)
        if list_type not in _LIST_TYPES:
            yield FieldError.unsupported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield FieldError.required(f"{path}.x-kubernetes-list-type", detail)
    if list_type == "map":
        if not keys:
            detail = "must not be empty if x-kubernetes-list-type is map"
            yield FieldError.required(f"{path}.x-kubernetes-list-map-keys", detail)
        yield from _map_keys(schema, keys or [], path)
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in _MAP_TYPES:
        yield FieldError.unsupported(f"{path}.x-kubernetes-map-type", map_type, _MAP_TYPES)


def _map_keys(schema: JSON, keys: list[str], path: str) -> Iterator[FieldError]:
    items = schema.get("items", {})
    properties = items.get("properties", {})
    if any(key not in properties for key in keys):
        detail = "entries must all be names of item properties"
        yield FieldError.invalid(f"{path}.x-kubernetes-list-map-keys", keys, detail)
    for key in keys:
        if key in properties and key not in items.get("required", ()):
            if "default" not in properties[key]:
                detail = (
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or "
                    "be a required property"
                )
                yield FieldError.required(f"{path}.items.properties[{key}].default", detail)


def _values(schema: JSON, path: str) -> Iterator[FieldError]:
    if "pattern" in schema:
        if problem := malformed(schema["pattern"]):
            detail = f"must be a valid regular expression, but isn't: {problem}"
            yield FieldError.invalid(f"{path}.pattern", schema["pattern"], detail)
    for name in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(schema.get(name, ())):
            types = bool(schema.get(_INT_OR_STRING)) and name != "oneOf"
            yield from _nested(nested, f"{path}.{name}[{index}]", types=types)
    if "not" in schema:
        yield from _nested(schema["not"], f"{path}.not", types=False)


def _nested(schema: JSON, path: str, *, types: bool) -> Iterator[FieldError]:
    for name, detail in _FORBIDDEN_NESTED.items():
        # Integers or strings may list their types here.
        if schema.get(name) is not None and not (types and name == "type"):
            yield FieldError.forbidden(f"{path}.{name}", detail)
    for name, field in schema.get("properties", {}).items():
        yield from _nested(field, f"{path}.properties[{name}]", types=False)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items", types=False)
    for name in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(schema.get(name, ())):
            yield from _nested(nested, f"{path}.{name}[{index}]", types=types)


def _rules(schema: JSON, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema.get(cel_rules.KEY, ())):
        where = f"{path}.{cel_rules.KEY}[{index}]"
        text, message = rule.get("rule", "").strip(), rule.get("message")
        if not text:
            yield FieldError.required(f"{where}.rule", "rule is not specified")
            continue
        if message is not None and not message.strip():
            yield FieldError.invalid(f"{where}.message", message, "must be non-empty if specified")
        elif message and "\n" in message.strip():
            yield FieldError.invalid(f"{where}.message", message, "must not contain line breaks")
        elif not message and "\n" in text:
            detail = "message must be specified if rule contains line breaks"
            yield FieldError.required(f"{where}.message", detail)
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield FieldError.unsupported(f"{where}.reason", rule["reason"], _REASONS)
        yield from _compiled(rule, where)


def _compiled(rule: JSON, where: str) -> Iterator[FieldError]:
    optional = bool(rule.get("optionalOldSelf"))
    try:
        expression = Expression.compile(rule["rule"], optional_old=optional)
    except CelError as error:
        yield FieldError.invalid(f"{where}.rule", rule, f"compilation failed: {error}")
        return
    if expression.returns not in ("BOOL", "DYN"):
        detail = "cel expression must evaluate to a bool"
        yield FieldError.invalid(f"{where}.rule", rule, detail)
    if optional and not expression.uses_old:
        detail = "may not be set if oldSelf is not used in rule"
        yield FieldError.invalid(f"{where}.optionalOldSelf", True, detail)
    if rule.get("messageExpression"):
        yield from _compiled_message(rule, where)


def _compiled_message(rule: JSON, where: str) -> Iterator[FieldError]:
    field = f"{where}.messageExpression"
    try:
        expression = Expression.compile(rule["messageExpression"])
    except CelError as error:
        detail = f"messageExpression compilation failed: {error}"
        yield FieldError.invalid(field, rule, detail)
        return
    if expression.returns not in ("STRING", "DYN"):
        yield FieldError.invalid(field, rule, "messageExpression must evaluate to a string")


def _default(schema: JSON, path: str) -> Iterator[FieldError]:
    value: Any = schema.get("default")
    if value is None:
        return
    if isinstance(value, dict):
        copied = {**value}
        unknown = prune(copied, schema) if not schema.get(PRESERVE) else []
        if unknown:
            yield FieldError.invalid(f"{path}.default", value, "must be pruned")
        fill_defaults(copied, schema)
        value = copied
    yield from validate(value, schema, under=f"{path}.default")
