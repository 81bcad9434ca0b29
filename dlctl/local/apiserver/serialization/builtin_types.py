"""Types of built-in resources: their fields, read from the tables in ``kinds/``.

Those of pods are in ``api.core_types``, along with the format of a table. Values are not checked
here; see ``typed_decoding``.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

from dlctl.api.core_types.type_tables import TypeDefinition, parse_table, pod_types

# Types of fields in the tables that hold any JSON, also those with a decoder of their own.
SCHEMA_OR_BOOL: Final = "JSONSchemaPropsOrBool"
ANY_JSON: Final = ("any", "JSONSchemaPropsOrArray", SCHEMA_OR_BOOL)
_TABLES: Final = ("core", "others")


@lru_cache(maxsize=1)
def kinds() -> Mapping[str, TypeDefinition]:
    """Return all types by their short name."""
    folder = files(__package__) / "kinds"
    texts = [(folder / f"{table}.types").read_text() for table in _TABLES]
    return {**pod_types(), **{kind.name: kind for text in texts for kind in parse_table(text)}}


@lru_cache(maxsize=1)
def descriptions() -> Mapping[str, str]:
    """Return the descriptions of types (``PodSpec``) and fields (``PodSpec.volumes``)."""
    text = (files(__package__) / "kinds" / "descriptions.txt").read_text()
    pairs = (line.partition(": ") for line in text.splitlines() if ": " in line)
    return {name: description for name, _, description in pairs}


@lru_cache
def merge_keys(root: str) -> Mapping[str, str]:
    """Return the merge key of each list that merges in objects of the type, by field path."""
    return dict(_merge_key_items(root, "", ()))


def _merge_key_items(name: str, path: str, around: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if name not in kinds() or name in around:
        return
    for field in kinds()[name].fields.values():
        where = f"{path}.{field.name}" if path else field.name
        if field.merge_key is not None:
            yield where, field.merge_key
        if "{}" not in field.shape:
            yield from _merge_key_items(field.type, where, (*around, name))
