"""Conditions in the statuses of stored objects, where any field may be absent."""

from collections.abc import Mapping
from typing import Any


def is_condition_true(status: Mapping[str, Any], type_: str) -> bool:
    """Return whether a status has a condition of this type that is True."""
    wanted = {"type": type_, "status": "True"}.items()
    return any(wanted <= each.items() for each in status.get("conditions") or ())
