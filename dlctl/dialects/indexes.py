"""Sets of replica indexes as batch/v1 writes them in ``completedIndexes``: ``1,3-5,7``."""

from collections.abc import Iterable, Iterator


def write(indexes: Iterable[int]) -> str:
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs(sorted(indexes))
    )


def read(text: str) -> frozenset[int]:
    """Read what :func:`write` wrote; a malformed part counts as not there."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def _runs(ordered: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end, index in enumerate(ordered):
        if end + 1 == len(ordered) or ordered[end + 1] != index + 1:
            yield ordered[start], index
            start = end + 1
