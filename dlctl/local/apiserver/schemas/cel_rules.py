"""The rules (``x-kubernetes-validations``) of a structural schema, compiled and evaluated.

Rules are compiled once per CRD. They run only on values that the schema itself accepts.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.schemas.cel_environment import CelError, Expression
from dlctl.local.apiserver.schemas.cel_values import self_value, unreadable_numbers
from dlctl.local.apiserver.schemas.coercion import EMBEDDED, additional
from dlctl.local.apiserver.schemas.validation import (
    ABSENT,
    ROOT,
    is_unchanged,
    old_field,
    old_items,
)
from dlctl.local.apiserver.status import FieldError

KEY = "x-kubernetes-validations"
# A schema without any of these has no rules.
_WITH_RULES: Final = frozenset({KEY, "properties", "items", "additionalProperties", "allOf"})


@attrs.frozen
class Rule:
    """One rule: its condition, and the message if it does not hold."""

    expression: Expression
    optional_old: bool
    text: str
    message: str
    message_expression: Expression | None
    reason: str
    field_path: str

    @classmethod
    def compile(cls, wire: JSON) -> "Rule":
        optional_old = bool(wire.get("optionalOldSelf"))
        message = wire.get("messageExpression", "")
        return cls(
            expression=Expression.compile(wire["rule"], optional_old=optional_old),
            optional_old=optional_old,
            text=(wire.get("message") or wire["rule"]).strip(),
            message=(wire.get("message") or f"failed rule: {wire['rule'].strip()}").strip(),
            message_expression=Expression.compile(message) if message else None,
            reason=wire.get("reason", "FieldValueInvalid"),
            field_path=wire.get("fieldPath", "").removeprefix("."),
        )


@attrs.frozen
class Rules:
    """The rules of a schema and of everything below it; falsy if there are none."""

    schema: JSON
    root: bool
    own_rules: tuple[Rule, ...]
    properties: Mapping[str, "Rules"]
    items: "Rules | None"
    additional: "Rules | None"
    all_of: tuple["Rules", ...]

    @classmethod
    def compile(cls, schema: JSON, *, root: bool = True) -> "Rules":
        """Compile all rules; raise CelError for the first invalid one."""
        return _compile(schema, schema, root)

    def __bool__(self) -> bool:
        below = (*self.properties.values(), self.items, self.additional, *self.all_of)
        return bool(self.own_rules) or any(below)

    def errors(self, value: Any, old: Any = ABSENT, path: str = "") -> Iterator[FieldError]:
        """Yield the violations of the value; its old version is given or ABSENT.

        An unchanged part is checked only by rules that compare it with the old one.
        """
        if value is None or not self:
            return
        yield from self._own_errors(value, old, path)
        for rules in self.all_of:
            yield from rules.errors(value, old, path)
        if isinstance(value, dict):
            yield from self._field_errors(value, old, path)
        elif isinstance(value, list) and self.items:
            before = old_items(old, value, self.schema)
            for index, item in enumerate(value):
                yield from self.items.errors(item, before[index], f"{path}[{index}]")

    def _field_errors(self, value: JSON, old: Any, path: str) -> Iterator[FieldError]:
        for key, item in value.items():
            before = old_field(old, key)
            if key in self.properties:
                where = f"{path}.{key}" if path else key
                yield from self.properties[key].errors(item, before, where)
            elif self.additional:
                yield from self.additional.errors(item, before, f"{path}[{key}]")

    def _own_errors(self, value: Any, old: Any, path: str) -> Iterator[FieldError]:
        if not self.own_rules:
            return
        has_old = old is not ABSENT and old is not None
        seen = self_value(value, self.schema, root=self.root)
        seen_old = (self_value(old, self.schema, root=self.root),) if has_old else ()
        unchanged = is_unchanged(value, old, self.schema)
        unreadable = list(unreadable_numbers(value, self.schema))
        for rule in self.own_rules:
            uses_old = rule.expression.uses_old
            if (unchanged and not uses_old) or (uses_old and not (has_old or rule.optional_old)):
                continue
            names = rule.expression.names
            problem = next((text for place, text in unreadable if names.issuperset(place)), "")
            error = (
                _rule_error(rule, self.schema, path, problem)
                if problem
                else _evaluate(rule, self.schema, value, (seen, seen_old), path)
            )
            if error is not None:
                yield error


def _compile(rules: JSON, schema: JSON, root: bool) -> Rules:
    # Rules may be in an allOf, where the surrounding schema declares the fields.
    properties = schema.get("properties", {})
    items, extra = rules.get("items"), additional(rules)
    return Rules(
        schema=schema,
        root=root,
        own_rules=tuple(Rule.compile(wire) for wire in rules.get(KEY, ())),
        properties={
            name: compiled
            for name, field in rules.get("properties", {}).items()
            if name in properties
            and not field.keys().isdisjoint(_WITH_RULES)
            and (compiled := _compile(field, properties[name], bool(field.get(EMBEDDED))))
        },
        items=_compile(items, schema["items"], False) if items and "items" in schema else None,
        additional=_compile(extra, additional(schema) or {}, False) if extra else None,
        all_of=tuple(_compile(each, schema, root) for each in rules.get("allOf", ())),
    )


def _evaluate(
    rule: Rule, schema: JSON, value: Any, seen: tuple[Any, tuple[Any, ...]], path: str
) -> FieldError | None:
    kind = schema.get("type", "")
    try:
        if rule.expression.value(*seen) is True:
            return None
    except CelError as error:
        return _rule_error(rule, schema, path, str(error))
    where = ".".join(part for part in (path, rule.field_path) if part) or ROOT
    message = _message(rule, seen)
    whole = kind in ("object", "array")
    if rule.reason == "FieldValueForbidden":
        return FieldError.forbidden(where, message)
    if rule.reason == "FieldValueRequired":
        return FieldError.required(where, message)
    if rule.reason == "FieldValueDuplicate":
        return (
            FieldError(where, "Duplicate value", rule.reason)
            if whole
            else FieldError.duplicate(where, value)
        )
    # A whole object would drown the message.
    return (
        FieldError(where, f"Invalid value: {message}")
        if whole
        else FieldError.invalid(where, value, message)
    )


def _rule_error(rule: Rule, schema: JSON, path: str, problem: str) -> FieldError:
    """Return the error of a rule that cannot be evaluated."""
    detail = f"{problem} evaluating rule: {rule.text}"
    if problem.startswith("no such overload"):
        detail = (
            f"'{problem}': call arguments did not match a supported operator, function or "
            f"macro signature for rule: {rule.text}"
        )
    return FieldError.invalid(path or ROOT, schema.get("type", ""), detail)


def _message(rule: Rule, seen: tuple[Any, tuple[Any, ...]]) -> str:
    if rule.message_expression is None:
        return rule.message
    try:
        text = rule.message_expression.value(*seen)
    except CelError:
        return rule.message
    usable = isinstance(text, str) and text.strip() and "\n" not in text
    return text if usable else rule.message
