"""Label selectors: a tokenizing parser with the error messages of the real server.

The requirements are merged by key, so that matching takes time by the labels of an object, not by
the length of the selector. Fields are in ``selectors``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Self

import attrs

from dlctl.local.apiserver import status
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation import names

_TOKEN: Final = re.compile(r"\s*(?:(==|!=|[=!<>(),])|([^\s=!<>(),]+))")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_SYMBOLS: Final = ("==", "!=", "=", "!", "<", ">", "(", ")", ",")
_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"


@attrs.frozen
class Requirement:
    """One condition on one label."""

    key: str
    op: str
    values: Sequence[str] = ()


@attrs.frozen
class LabelSelector:
    """Requirements that all hold for the labels of a selected object; falsy if there are none."""

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    # Each by the key of a label that has to have, or must not have, one of the values.
    allowed: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    rejected: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    # Exclusive bounds.
    above: Mapping[str, int] = attrs.field(factory=dict)
    below: Mapping[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Self:
        forbidden: set[str] = set()
        required: set[str] = set()
        allowed: dict[str, set[str]] = {}
        rejected: dict[str, set[str]] = {}
        above: dict[str, int] = {}
        below: dict[str, int] = {}
        for each in requirements:
            key, values = each.key, each.values
            match each.op:
                case "!":
                    forbidden.add(key)
                    continue
                case "notin":
                    rejected.setdefault(key, set()).update(values)
                    continue
                case "in":
                    allowed.setdefault(key, set(values)).intersection_update(values)
                case ">":
                    above[key] = max(int(values[0]), above.get(key, int(values[0])))
                case "<":
                    below[key] = min(int(values[0]), below.get(key, int(values[0])))
                case _:
                    # That the label exists is all.
                    pass
            required.add(key)
        return cls(
            frozenset(required),
            frozenset(forbidden),
            {key: frozenset(values) for key, values in allowed.items()},
            {key: frozenset(values) for key, values in rejected.items()},
            above,
            below,
        )

    def __bool__(self) -> bool:
        return bool(self.required or self.forbidden or self.rejected)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return (
            len(self.required) <= len(labels)
            and all(key in labels for key in self.required)
            and all(self._accepts(key, value) for key, value in labels.items())
        )

    def _accepts(self, key: str, value: str) -> bool:
        if key in self.forbidden or value in self.rejected.get(key, ()):
            return False
        if key in self.allowed and value not in self.allowed[key]:
            return False
        low, high = self.above.get(key), self.below.get(key)
        if low is None and high is None:
            return True
        if not _is_number(value):
            return False
        number = int(value)
        return (low is None or number > low) and (high is None or number < high)


def _is_number(text: str) -> bool:
    # As many digits as 64 bits hold.
    return _NUMBER.fullmatch(text) is not None


def parse_label_selector(text: str) -> LabelSelector:
    """Parse a label selector; raise a bad request if it is malformed."""
    # Spaces at the end would be looked at once for each of them.
    tokens = [a or b for a, b in _TOKEN.findall(text.strip())]
    return LabelSelector.of(_Parser(tokens).requirements())


@attrs.define
class _Parser:
    tokens: list[str]
    _at: int = 0

    def _peek(self) -> str:
        return self.tokens[self._at] if self._at < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def requirements(self) -> Iterator[Requirement]:
        if not self._peek():
            return
        while True:
            token = self._peek()
            if token != "!" and token in _SYMBOLS:
                raise _syntax_error(token, "!, identifier, or 'end of string'")
            yield _checked(self._requirement())
            token = self._take()
            if not token:
                return
            if token != ",":
                raise _syntax_error(token, "',' or 'end of string'")
            if self._peek() != "!" and (not self._peek() or self._peek() in _SYMBOLS):
                raise _syntax_error(self._peek(), "identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._take()
        if key == "!":
            key = self._take()
            if not key or key in _SYMBOLS:
                raise _unparsed(f"found '{key}', expected: identifier")
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        op = self._take()
        match op:
            case "in" | "notin":
                return Requirement(key, op, self._values())
            case "=" | "==":
                return Requirement(key, "in", (self._value(),))
            case "!=":
                return Requirement(key, "notin", (self._value(),))
            case "<" | ">":
                return Requirement(key, op, (self._value(),))
            case _:
                raise _unparsed(f"found '{op}', expected: {_OPERATORS}")

    def _value(self) -> str:
        # A missing value is the empty one.
        return "" if self._peek() in ("", ",") else self._take()

    def _values(self) -> Sequence[str]:
        if self._peek() != "(":
            raise _unparsed(f"found '{self._peek()}' expected: '('")
        self._take()
        values = [""]
        while (token := self._take()) != ")":
            if token == ",":
                values.append("")
            elif token and token not in _SYMBOLS and not values[-1]:
                values[-1] = token
            else:
                raise _unparsed(f"found '{token}', expected: ',' or ')'")
        return tuple(values)


def _checked(requirement: Requirement) -> Requirement:
    for complaint in names.qualified_name(requirement.key):
        raise _invalid("<nil>", requirement.key, complaint)
    for index, value in enumerate(requirement.values):
        if requirement.op in ("<", ">"):
            if not _is_number(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _invalid(f"values[{index}]", value, detail)
            continue
        for complaint in names.label_value(value):
            raise _invalid(f"values[{index}][{requirement.key}]", value, complaint)
    return requirement


def _invalid(field: str, value: str, detail: str) -> status.StatusError:
    return _unparsed(f"{field}: {FieldError.invalid(field, value, detail).message}")


def _syntax_error(token: str, wanted: str) -> status.StatusError:
    return status.bad_request(f"found '{token}', expected: {wanted}")


def _unparsed(problem: str) -> status.StatusError:
    return status.bad_request(f"unable to parse requirement: {problem}")
