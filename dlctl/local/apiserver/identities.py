"""Hashable stand-ins for JSON values, so that finding one in a list takes no search."""

from collections.abc import Hashable
from types import NoneType
from typing import Any

import msgspec


def identity(value: Any) -> Hashable:
    """Return a value that equals those of equal JSON values."""
    if isinstance(value, str | int | float | NoneType):
        return value
    return msgspec.json.encode(value, order="deterministic")
