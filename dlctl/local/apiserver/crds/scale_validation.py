"""Validation of the replicas that the scale subresource of a custom resource reads."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver import go_floats
from dlctl.local.apiserver.status import FieldError

_MAX_INT32: Final = 2**31 - 1


def replicas_errors(obj: JSON, path: str) -> Iterator[FieldError]:
    """Yield why a number of replicas is invalid; an absent one is not."""
    value: Any = obj
    for name in path.strip(".").split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, float):
        shown = go_floats.as_text(value)
        detail = f"{path} accessor error: {shown} is of the type float64, expected int64"
        yield FieldError.invalid(path, 0, detail)
    elif not isinstance(value, int):
        # Absent, or of a type that the schema rejects.
        return
    elif value < 0:
        yield FieldError.invalid(path, value, "should be a non-negative integer")
    elif value > _MAX_INT32:
        yield FieldError.invalid(path, value, f"should be less than or equal to {_MAX_INT32}")
