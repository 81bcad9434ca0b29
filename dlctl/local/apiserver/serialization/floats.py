"""Floats as Go encodes them: 3.0 as 3, which is an integer when read."""

import math
from typing import Final

_INT64_LIMIT: Final = 2.0**63


def whole_as_integer(literal: str) -> float:
    """Return the number of a literal with a fraction or an exponent, such as 3 for 3.0.

    :raises ValueError: if it is too large for a float.
    """
    value = float(literal)
    if math.isinf(value):
        raise ValueError("Number out of range")
    return int(value) if value.is_integer() and abs(value) < _INT64_LIMIT else value
