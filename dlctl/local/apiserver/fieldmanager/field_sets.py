"""Sets of field paths, in the form of ``fieldsV1``: nested maps from path elements.

An element is ``f:name``, ``k:{...}`` for a list item by its keys, or ``v:...`` for a value of a
set. An empty map, or one that contains ".", says that the path itself is in the set.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from dlctl.errors import DlctlError
from dlctl.local.apiserver.serialization.nesting_depth import decode_json

FieldSet = dict[str, Any]
Path = tuple[str, ...]
_SELF: Final = "."
_INDEX: Final = re.compile("[+-]?[0-9]+")

encode_key = msgspec.json.Encoder(order="deterministic").encode


class FieldSetError(DlctlError):
    """A value is not a set of field paths."""


def parse(value: Any) -> FieldSet:
    """Return the set that a client has sent, in its shortest form; null stands for an empty one.

    Path elements of unknown kinds are left out.
    """
    if not isinstance(value, dict | None):
        raise FieldSetError(f"a set of fields is an object, not {type(value).__name__}")
    result: FieldSet = {}
    for text, below in (value or {}).items():
        if text == _SELF:
            result[_SELF] = {}
        elif element := _parsed_element(text):
            result[element] = parse(below)
    return {} if list(result) == [_SELF] else result


def _parsed_element(text: str) -> str:
    """Return a path element in canonical form; empty if its kind is unknown."""
    kind, colon, rest = text[:1], text[1:2], text[2:]
    if colon != ":":
        raise FieldSetError(f"a path element begins with its kind: {text}")
    try:
        if kind == "i":
            if not _INDEX.fullmatch(rest):
                raise FieldSetError(f"the index of a list item is a number: {text}")
            return f"i:{int(rest)}"
        if kind in ("k", "v"):
            decoded = decode_json(rest)
            if kind == "k" and not isinstance(decoded, dict):
                raise FieldSetError(f"the key of a list item is an object: {text}")
            return f"{kind}:{encode_key(decoded).decode()}"
    except ValueError as error:
        raise FieldSetError(f"{text}: {error}") from None
    return text if kind == "f" else ""


def node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Return the entry of a path with what is below it; None if there is nothing."""
    if not children:
        return {} if member else None
    return {_SELF: {}, **children} if member else children


def is_member(entry: FieldSet) -> bool:
    return not entry or _SELF in entry


def children_of(entry: FieldSet) -> FieldSet:
    return {key: below for key, below in entry.items() if key != _SELF}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    result = dict(one)
    for key, entry in other.items():
        before = result.get(key)
        if before is None:
            result[key] = entry
            continue
        member = is_member(before) or is_member(entry)
        joined = node(union(children_of(before), children_of(entry)), member=member)
        result[key] = {} if joined is None else joined
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the paths of the first set that are not in the second one."""
    return _selected(one, other, keep_common=False)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    return _selected(one, other, keep_common=True)


def _selected(one: FieldSet, other: FieldSet, *, keep_common: bool) -> FieldSet:
    result = {}
    for key, entry in one.items():
        against = other.get(key)
        if against is None:
            if not keep_common:
                result[key] = entry
            continue
        below = _selected(children_of(entry), children_of(against), keep_common=keep_common)
        member = is_member(entry) and is_member(against) is keep_common
        if (left := node(below, member=member)) is not None:
            result[key] = left
    return result


def without(fields: FieldSet, removed: FieldSet) -> FieldSet:
    """Return the set without the paths of another, and without all that is below them."""
    result = {}
    for key, entry in fields.items():
        against = removed.get(key)
        if against is None:
            result[key] = entry
        elif not is_member(against):
            below = without(children_of(entry), against)
            if (left := node(below, member=is_member(entry))) is not None:
                result[key] = left
    return result


def paths(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Yield the paths in a set, parents first."""
    for key, entry in sorted(fields.items()):
        here = (*above, key)
        if is_member(entry):
            yield here
        yield from paths(children_of(entry), here)


def path_text(path: Path) -> str:
    """Return a path as messages show it: ``.spec.containers[name="main"].image``."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        return keys_text(msgspec.json.decode(rest))
    return f"[{rest}]"


def keys_text(keys: Mapping[str, Any]) -> str:
    return f"[{','.join(f'{k}={encode_key(v).decode()}' for k, v in keys.items())}]"
