"""The formats of values in specs and pod templates: numbers, quantities and times.

Shared by the schema and the reader of jobs.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from dlctl import errors
from dlctl.api import quantities

INT32: Final = range(-(2**31), 2**31)
INT64: Final = range(-(2**63), 2**63)
# As Go parses it.
_TIME_REGEX: Final = re.compile(
    r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
# What the format does not ensure of that; as short as CRDs need it, which have it often.
_TIME_PATTERN: Final = "^.{10}T.{8}([.][0-9]+)?(Z|[+-]([01].|2[0-3]):[0-5].)$"
# With a format, a server lets a list pass as a string unless the number of its items is wrong.
TIME_SCHEMA: Final = {
    "type": "string",
    "format": "date-time",
    "pattern": _TIME_PATTERN,
    "minItems": 1,
    "maxItems": 0,
}
_BYTES_REGEX: Final = re.compile(r"([0-9]+) ?([kKMGTPE])i?[bB]", re.ASCII)
# As shells, kustomize and authors of examples write them.
_PLACEHOLDER_REGEX: Final = re.compile(r"\$\{?\w+\}?|\$\(\w+\)|<[\w -]+>", re.ASCII)


def invalid_reason(value: Any, type_: str) -> str:
    """Return what is wrong with a value of a type, and the fix; "" if it is valid."""
    check = _CHECK_BY_TYPE.get(type_)
    return check(value) if check else ""


def format_value(value: Any) -> str:
    """Return a value roughly as in manifests, shortened."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else errors.quoted(value)


def placeholder_fix(value: Any) -> str:
    """Return the fix of a value that stands for another one; "" for other values."""
    is_placeholder = isinstance(value, str) and _PLACEHOLDER_REGEX.search(value)
    return ": fill in the placeholder first, as with `envsubst`" if is_placeholder else ""


def _string(value: Any) -> str:
    if isinstance(value, str):
        return ""
    fix = ": put it in quotes" if isinstance(value, int | float) else ""
    return f"must be a string, not {format_value(value)}{fix}"


def _boolean(value: Any) -> str:
    if isinstance(value, bool):
        return ""
    fix = ": leave out the quotes" if value in ("true", "false") else ""
    return f"must be true or false, not {format_value(value)}{fix}"


def _integer(bounds: range) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        # Digits beyond 64 bits are read as a float.
        if isinstance(value, float) and value.is_integer() and int(value) not in bounds:
            value = int(value)
        # In Python a bool is an int, but ``true`` does not mean 1.
        if not isinstance(value, int) or isinstance(value, bool):
            digits = isinstance(value, str) and value.isascii() and value.isdigit()
            fix = ": leave out the quotes" if digits else placeholder_fix(value)
            return f"must be an integer, not {format_value(value)}{fix}"
        if value not in bounds:
            return f"is {format_value(value)}, but must be between {bounds.start} and {bounds[-1]}"
        return ""

    return check


def _int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return ""
    return _integer(INT32)(value).replace("an integer", "an integer or a string")


def _quantity(value: Any) -> str:
    # A quantity may be a JSON number, also a fraction, as in pods.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    if isinstance(value, str) and quantities.is_quantity(value):
        return ""
    found = _BYTES_REGEX.fullmatch(value) if isinstance(value, str) else None
    unit = found[2].upper() if found else ""
    fix = f": write {found[1]}{unit}i" if found else placeholder_fix(value)
    return f"must be a quantity such as 500m, 2 or 16Gi, not {format_value(value)}{fix}"


def _time(value: Any) -> str:
    if isinstance(value, str) and _TIME_REGEX.fullmatch(value):
        return ""
    return f"must be a time such as 2006-01-02T15:04:05Z, not {format_value(value)}"


_CHECK_BY_TYPE: Final[dict[str, Callable[[Any], str]]] = {
    "str": _string,
    "bool": _boolean,
    "int32": _integer(INT32),
    "int64": _integer(INT64),
    "intstr": _int_or_string,
    "quantity": _quantity,
    "time": _time,
}
