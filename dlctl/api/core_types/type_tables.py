"""The fields of the Kubernetes types that pods and metrics consist of, read from tables.

A table has sections ``[package]`` and lines ``Name = field:type field:type``; a type may be a list
(``[]T``) or a map (``{}T``), ``!`` marks a required field, ``?`` an optional string of which Go
tells empty from absent, ``@key`` the merge key of a list in strategic merge patches. The CRDs, the
decoder of jobs and the embedded API server share these tables.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

import attrs

_FIELD: Final = re.compile(
    r"(?P<name>[^:]+):(?P<shape>(\[\]|\{\})*)(?P<type>\w+)(?P<rest>[!?@\w]*)"
)
_TABLES: Final = ("meta", "metrics", "pods")


@attrs.frozen
class Field:
    """One field of a type. ``merge_key`` is "" for a list that is a set, None for an atomic one."""

    name: str
    # From the outermost list ("[]") or map ("{}") inwards.
    shape: tuple[str, ...]
    type: str
    required: bool = False
    merge_key: str | None = None
    # For strings: whether an empty one is encoded, as without omitempty or behind a pointer.
    keeps_empty: bool = False


@attrs.frozen
class TypeDefinition:
    """A struct: its fields by name, and the package prefix of its definition name."""

    name: str
    package: str
    fields: Mapping[str, Field]

    @property
    def definition_name(self) -> str:
        return f"{self.package}.{self.name}"


@lru_cache(maxsize=1)
def pod_types() -> Mapping[str, TypeDefinition]:
    """Return the types that a PodTemplateSpec or a MetricSpec consists of, by short name."""
    texts = [(files(__package__) / f"{table}.types").read_text() for table in _TABLES]
    return {kind.name: kind for text in texts for kind in parse_table(text)}


def parse_table(text: str) -> Iterator[TypeDefinition]:
    """Yield the types of a table."""
    package = ""
    for line in text.replace("\n    ", " ").splitlines():
        if line.startswith("["):
            package = line.strip("[]")
            continue
        name, _, words = line.partition(" = ")
        fields = [_parse_field(word) for word in words.split()]
        yield TypeDefinition(name, package, {field.name: field for field in fields})


def _parse_field(word: str) -> Field:
    match = _FIELD.fullmatch(word)
    assert match is not None, word
    shape = tuple(re.findall(r"\[\]|\{\}", match["shape"]))
    mark, at, key = match["rest"].partition("@")
    merge_key = key if at else None
    return Field(match["name"], shape, match["type"], mark == "!", merge_key, bool(mark))
