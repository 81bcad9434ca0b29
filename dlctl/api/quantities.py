"""Resource quantities (``500m``, ``2Gi``) as numbers and in canonical form."""

import re
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Final

from dlctl.errors import DlctlError

# Kubernetes has no limits except those of its integers. These exceed all practical values and what
# a float can express, and keep every operation within :data:`_EXACT_CONTEXT`.
MAX_CHARS: Final = 64
# The definitions of the kinds repeat it often, and have little room.
PATTERN: Final = r"^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})?$"
_REGEX: Final = re.compile(PATTERN.removesuffix("$"), re.ASCII)
_TOO_LONG_MESSAGE: Final = f"quantities have at most {MAX_CHARS} characters"
# Larger floats need more digits.
_MAX_FLOAT: Final = 10**MAX_CHARS
_EXACT_CONTEXT: Final = Context(prec=256)
_POWER_BY_DECIMAL_SUFFIX: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_POWER_BY_BINARY_SUFFIX: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_EXPONENT_REGEX: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_POWER_BY_EXPONENT: Final = {
    f"e{power}" if power else "": power for power in range(-9, 2 * MAX_CHARS, 3)
}
# Kubernetes caps quantities with a binary suffix at this value.
_MAX_BINARY: Final = Decimal(2**63 - 1)


class QuantityError(DlctlError):
    """The text is not a quantity."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )


@lru_cache(maxsize=1024)
def parse_quantity(text: str) -> Decimal:
    """Return the quantity as a number.

    :raises QuantityError: if the text is not a quantity.
    """
    with localcontext(_EXACT_CONTEXT):
        return _parse(text)[0]


def is_quantity(text: str) -> bool:
    return len(text) <= MAX_CHARS and _REGEX.fullmatch(text) is not None


def canonicalize(value: str | float) -> str:
    """Return the shortest form with an integer, keeping the kind of suffix."""
    if isinstance(value, str):
        return _canonicalize(value)
    if isinstance(value, bool):
        raise QuantityError
    if not -_MAX_FLOAT < value < _MAX_FLOAT:
        raise QuantityError(_TOO_LONG_MESSAGE)
    return _canonicalize(f"{Decimal(str(value)):f}")


def sum_quantities(quantities: Iterable[tuple[str, int]]) -> str:
    """Return the sum of quantity x count, in the form of the first nonzero quantity.

    :raises QuantityError: if a text is not a quantity.
    """
    number, suffix_of_sum = Decimal(0), ""
    with localcontext(_EXACT_CONTEXT):
        for text, count in quantities:
            each, suffix = _parse(text)
            suffix_of_sum = suffix_of_sum if number else suffix
            number += each * count
        return _format(number, suffix_of_sum)


@lru_cache(maxsize=1024)
def _canonicalize(text: str) -> str:
    with localcontext(_EXACT_CONTEXT):
        return _format(*_parse(text))


def _format(number: Decimal, suffix: str) -> str:
    if (
        suffix in _POWER_BY_BINARY_SUFFIX
        and number == number.to_integral_value()
        and abs(number) >= 1024
    ):
        for unit in reversed(_POWER_BY_BINARY_SUFFIX):
            size = 1024 ** _POWER_BY_BINARY_SUFFIX[unit]
            if number % size == 0:
                return f"{int(number) // size}{unit}"
        return str(int(number))
    if suffix in _POWER_BY_BINARY_SUFFIX and number == number.to_integral_value():
        return str(int(number))
    if _EXPONENT_REGEX.fullmatch(suffix):
        return _format_scaled(number, _POWER_BY_EXPONENT)
    return _format_scaled(number, _POWER_BY_DECIMAL_SUFFIX)


def _format_scaled(number: Decimal, units: dict[str, int]) -> str:
    if number == 0:
        return "0"
    trailing_zeros = number.normalize().as_tuple().exponent
    assert isinstance(trailing_zeros, int)
    for unit, power in reversed(units.items()):
        if power <= trailing_zeros:
            return f"{int(number.scaleb(-power))}{unit}"
    # Below the smallest unit: round away from zero.
    return f"{int(number.scaleb(9).to_integral_value('ROUND_UP'))}n"


def _parse(text: str) -> tuple[Decimal, str]:
    if len(text) > MAX_CHARS:
        raise QuantityError(_TOO_LONG_MESSAGE)
    match = _REGEX.fullmatch(text)
    if match is None:
        raise QuantityError
    suffix = match[3] or ""
    number = Decimal(text.removesuffix(suffix))
    if suffix in _POWER_BY_BINARY_SUFFIX:
        whole = number * 1024 ** _POWER_BY_BINARY_SUFFIX[suffix]
        return max(-_MAX_BINARY, min(whole, _MAX_BINARY)), suffix
    if suffix in _POWER_BY_DECIMAL_SUFFIX:
        return number.scaleb(_POWER_BY_DECIMAL_SUFFIX[suffix]), suffix
    return number.scaleb(int(suffix[1:])), suffix
