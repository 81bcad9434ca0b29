"""Hashable stand-ins for JSON values, so that finding one in a list takes no search."""

from collections.abc import Hashable
from types import NoneType
from typing import Any

import msgspec


def hashable(value: Any) -> Hashable:
    """Return a hashable value; two are equal if their JSON values are."""
    if isinstance(value, str | int | float | NoneType):
        return value
    return msgspec.json.encode(value, order="deterministic")
