"""The types of built-in resources: which fields there are, read from the tables in ``kinds/``.

A table has sections ``[package]`` and lines ``Name = field:type field:type``; a type may be a list
(``[]T``) or a map (``{}T``), ``!`` marks a required field, ``@key`` how a strategic merge patch
merges the list. Values are not known here; see ``shaping``.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

import attrs

_FIELD: Final = re.compile(r"(?P<name>[^:]+):(?P<shape>(\[\]|\{\})*)(?P<type>\w+)(?P<rest>[!@\w]*)")
_TABLES: Final = ("meta", "pods", "core", "others")


@attrs.frozen
class Field:
    """One field of a type. ``merge_key`` is "" for a list that is a set, None for an atomic one."""

    name: str
    # The outermost list ("[]") or map ("{}") first.
    shape: tuple[str, ...]
    type: str
    required: bool = False
    merge_key: str | None = None


@attrs.frozen
class Kind:
    """A struct: its fields by name, and the package that its definition is named after."""

    name: str
    package: str
    fields: Mapping[str, Field]

    @property
    def definition(self) -> str:
        return f"{self.package}.{self.name}"


@lru_cache(maxsize=1)
def kinds() -> Mapping[str, Kind]:
    """Return all types by their short name."""
    folder = files(__package__) / "kinds"
    texts = [(folder / f"{table}.types").read_text() for table in _TABLES]
    return {kind.name: kind for text in texts for kind in _parsed(text)}


@lru_cache(maxsize=1)
def descriptions() -> Mapping[str, str]:
    """Return what is said of types (``PodSpec``) and fields (``PodSpec.volumes``)."""
    text = (files(__package__) / "kinds" / "descriptions.txt").read_text()
    pairs = (line.partition(": ") for line in text.splitlines() if ": " in line)
    return {name: said for name, _, said in pairs}


@lru_cache
def merge_keys(root: str) -> Mapping[str, str]:
    """Return the merge key of each list that merges in objects of the type, by field path."""
    return dict(_merging(root, "", ()))


def _merging(name: str, path: str, around: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if name not in kinds() or name in around:
        return
    for field in kinds()[name].fields.values():
        where = f"{path}.{field.name}" if path else field.name
        if field.merge_key is not None:
            yield where, field.merge_key
        if "{}" not in field.shape:
            yield from _merging(field.type, where, (*around, name))


def _parsed(text: str) -> Iterator[Kind]:
    package = ""
    for line in text.replace("\n    ", " ").splitlines():
        if line.startswith("["):
            package = line.strip("[]")
            continue
        name, _, words = line.partition(" = ")
        fields = [_field(word) for word in words.split()]
        yield Kind(name, package, {field.name: field for field in fields})


def _field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    assert match is not None, word
    shape = tuple(re.findall(r"\[\]|\{\}", match["shape"]))
    required, at, key = match["rest"].partition("@")
    return Field(match["name"], shape, match["type"], bool(required), key if at else None)
