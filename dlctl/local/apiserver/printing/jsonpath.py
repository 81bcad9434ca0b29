"""The JSONPath subset of printer columns and scale paths: fields, indexes, slices, filters.

A path without a match yields an empty list, not an error.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from dlctl.errors import DlctlError

_TOKEN: Final = re.compile(
    r"""\.\.?(?P<field>(\\.|[^.\[\]\\])+)"""
    r"""|\[\?\(@(?P<left>(\.[^=!<>\]\s]+)*)\s*((?P<op>==|!=)\s*(?P<right>[^)]+))?\)\]"""
    r"""|\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]"""
    r"""|\[(?P<index>-?\d+|\*)\]"""
    r"""|\[(?P<start>-?\d+)?:(?P<end>-?\d+)?\]"""
)


class JSONPathError(DlctlError):
    """The path is malformed, or uses unsupported syntax."""


@lru_cache(maxsize=1024)
def parsed(path: str) -> tuple[re.Match[str], ...]:
    """Return the steps of a path such as ``.status.conditions[0].type``."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps, at = [], 0
    while at < len(text) and text != ".":
        match = _TOKEN.match(text, at)
        if match is None:
            raise JSONPathError(f"unrecognized character in {path!r} at {at}")
        steps.append(match)
        at = match.end()
    return tuple(steps)


def find(value: Any, path: str) -> list[Any]:
    """Return all values that the path matches, without nulls."""
    values = [value]
    for step in parsed(path):
        values = [found for each in values for found in _follow(each, step)]
    return [each for each in values if each is not None]


def _follow(value: Any, step: re.Match[str]) -> Iterator[Any]:
    field = step["field"] or step["key"]
    if step[0].startswith("..") and field is not None:
        yield from _descend(value, field)
    elif field is not None:
        yield from _fields(value, re.sub(r"\\(.)", r"\1", field))
    elif step["index"] is not None:
        yield from _elements(value, step["index"])
    elif not isinstance(value, list):
        return
    elif step["left"] is None:
        start, end = (int(step[name]) if step[name] else None for name in ("start", "end"))
        yield from value[start:end]
    else:
        yield from (item for item in value if _matches(item, step))


def _fields(value: Any, field: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if field == "*":
            yield from value.values()
        elif field in value:
            yield value[field]


def _descend(value: Any, field: str) -> Iterator[Any]:
    yield from _fields(value, field)
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in below:
        yield from _descend(each, field)


def _elements(value: Any, index: str) -> Iterator[Any]:
    if isinstance(value, dict) and index == "*":
        yield from value.values()
    elif isinstance(value, list):
        if index == "*":
            yield from value
        elif -len(value) <= int(index) < len(value):
            yield value[int(index)]


def _matches(item: Any, step: re.Match[str]) -> bool:
    found = find(item, step["left"])
    if not step["op"]:
        return bool(found)
    wanted = step["right"].strip().strip("'\"")
    equal = bool(found) and _literal(found[0]) == wanted
    return equal if step["op"] == "==" else not equal


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
