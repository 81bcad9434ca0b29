"""Sets of replica indexes as batch/v1 writes them in ``completedIndexes``: ``1,3-5,7``."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

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


def _runs(indexes: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end, index in enumerate(indexes):
        if end + 1 == len(indexes) or indexes[end + 1] != index + 1:
            yield indexes[start], index
            start = end + 1
