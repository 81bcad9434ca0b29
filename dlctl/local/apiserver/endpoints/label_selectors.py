"""Label selectors: a tokenizing parser with the error messages of the real server.

The result is a list of requirements on labels; fields are in ``selectors``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import msgspec

from dlctl.local.apiserver import status
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

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.op:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case _:
                return value is not None and _compare_numbers(value, self.op, self.values[0])


def _compare_numbers(value: str, op: str, bound: str) -> bool:
    if not _is_number(value):
        return False
    return int(value) > int(bound) if op == ">" else int(value) < int(bound)


def _is_number(text: str) -> bool:
    # As many digits as 64 bits hold.
    return _NUMBER.fullmatch(text) is not None


def parse_label_selector(text: str) -> list[Requirement]:
    """Parse a label selector; raise a bad request if it is malformed."""
    return list(_Parser([a or b for a, b in _TOKEN.findall(text)]).requirements())


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
        raise _unparsed(f"<nil>: Invalid value: {_quoted(requirement.key)}: {complaint}")
    for index, value in enumerate(requirement.values):
        if requirement.op in ("<", ">"):
            if not _is_number(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _unparsed(f"values[{index}]: Invalid value: {_quoted(value)}: {detail}")
            continue
        for complaint in names.label_value(value):
            where = f"values[{index}][{requirement.key}]"
            raise _unparsed(f"{where}: Invalid value: {_quoted(value)}: {complaint}")
    return requirement


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _syntax_error(token: str, wanted: str) -> status.StatusError:
    return status.bad_request(f"found '{token}', expected: {wanted}")


def _unparsed(problem: str) -> status.StatusError:
    return status.bad_request(f"unable to parse requirement: {problem}")
