"""Conditions in the statuses of stored objects, where any field may be absent."""

from collections.abc import Mapping
from typing import Any

from dlctl.api.json_types import JSON


def is_condition_true(status: Mapping[str, Any], type_: str) -> bool:
    """Return whether a status has a condition of this type that is True."""
    wanted = {"type": type_, "status": "True"}.items()
    return any(wanted <= each.items() for each in status.get("conditions") or ())


def with_condition(status: Mapping[str, Any], new: JSON) -> list[JSON]:
    """Return the conditions of a status with a new one, which replaces one of its type."""
    conditions = status.get("conditions") or ()
    return [*(each for each in conditions if each.get("type") != new["type"]), new]
