"""Merge patch (RFC 7386), as a pure function on JSON values."""

from collections.abc import Mapping
from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """Return the target after a merge patch: null deletes, objects merge, the rest replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
