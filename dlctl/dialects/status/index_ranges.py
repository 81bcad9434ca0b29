"""Sets of replica indexes as batch/v1 writes them in ``completedIndexes``: ``1,3-5,7``."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

# No kind has more types of replicas.
MAX_TYPES: Final = 8

# At most the digits of a replica index: a malformed text must not become a huge set.
_PART: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def write(indexes: Iterable[int]) -> str:
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs(sorted(indexes))
    )


def read(text: str) -> frozenset[int]:
    """Read the output of :func:`write`; malformed parts are ignored.

    So are parts that are not in ascending order: a long text must not repeat a large set.
    """
    indexes: set[int] = set()
    end = -1
    for part in text.split(","):
        if match := _PART.fullmatch(part):
            first, last = int(match[1]), int(match[2] or match[1])
            if end < first <= last:
                indexes.update(range(first, last + 1))
                end = last
    return frozenset(indexes)


def write_by_type(indexes: Mapping[str, frozenset[int]]) -> dict[str, str]:
    """Return the indexes of each replica type that has any."""
    return {type_: write(found) for type_, found in sorted(indexes.items()) if found}


def read_by_type(texts: Mapping[str, Any]) -> dict[str, frozenset[int]]:
    """Read the output of :func:`write_by_type`; malformed parts are ignored."""
    items = islice(texts.items(), MAX_TYPES)
    found = {type_: read(text) for type_, text in items if isinstance(text, str)}
    return {type_: indexes for type_, indexes in found.items() if indexes}


def _runs(indexes: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end, index in enumerate(indexes):
        if end + 1 == len(indexes) or indexes[end + 1] != index + 1:
            yield indexes[start], index
            start = end + 1
