"""The merge patch between two JSON objects (RFC 7386)."""

from collections.abc import Mapping
from typing import Any


def merge_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns the old object into the new one; empty if they are equal.

    Lists are replaced as a whole; null removes a field that the new object lacks.
    """
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if name in old and before == value:
            continue
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            patch[name] = merge_diff(before, value)
        else:
            patch[name] = value
    return patch
