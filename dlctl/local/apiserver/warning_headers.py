"""Warnings of a response as values of ``Warning`` headers, which kubectl shows."""

from collections.abc import Iterator, Sequence
from typing import Final

_TOTAL_CHARACTERS: Final = 4096
_ITEM_CHARACTERS: Final = 256
# Python clients read no more than 128 headers.
_MAX_WARNINGS: Final = 100


def warning_headers(warnings: Sequence[str]) -> Iterator[str]:
    """Yield one value per warning; where they are too long in total, the first ones, shortened."""
    limit = _ITEM_CHARACTERS if sum(map(len, warnings)) > _TOTAL_CHARACTERS else _TOTAL_CHARACTERS
    written = 0
    for text in warnings[:_MAX_WARNINGS]:
        if written >= _TOTAL_CHARACTERS:
            return
        shown = text[:limit]
        written += len(shown)
        escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
        yield f'299 - "{escaped}"'
