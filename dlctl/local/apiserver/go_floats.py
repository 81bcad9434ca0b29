"""Floats as Go reads and prints them."""

import math
from decimal import Decimal
from typing import Final

_INT64_LIMIT: Final = 2.0**63
# From this power of ten on, and from -5 down, the exponent is written.
_MAX_EXPONENT: Final = 6


def whole_as_integer(literal: str) -> float:
    """Return the number of a literal such as 3.0, which Go encodes as 3 and reads as an integer.

    :raises ValueError: if it is too large for a float.
    """
    value = float(literal)
    if math.isinf(value):
        raise ValueError("Number out of range")
    return int(value) if value.is_integer() and abs(value) < _INT64_LIMIT else value


def as_text(value: float) -> str:
    """Return a float as messages show it, by ``%v``: 1.0 as ``1``, 1000000.0 as ``1e+06``."""
    digits = Decimal(repr(value)).normalize()
    exponent = digits.adjusted()
    if -5 < exponent < _MAX_EXPONENT:
        return f"{digits:f}"
    mantissa = digits.scaleb(-exponent)
    return f"{mantissa:f}e{exponent:+03d}"
