"""Amounts of resources (``500m``, ``2Gi``) as numbers, and in their canonical spelling."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Final

from dlctl.errors import DlctlError

_FORM: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-zA-Z]*(?:[+-]?\d+)?)")
_DECIMAL: Final = {
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
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_EXPONENT: Final = re.compile(r"[eE]([+-]?\d+)")


class QuantityError(DlctlError):
    """The text is no amount."""

    def __init__(self) -> None:
        super().__init__(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )


@lru_cache(maxsize=1024)
def amount(text: str) -> Decimal:
    """Return the amount as a number; raise QuantityError if it is none."""
    return _parsed(text)[0]


def canonical(value: str | float) -> str:
    """Return the shortest spelling with an integer and the kind of suffix it came with."""
    return _canonical(value if isinstance(value, str) else f"{Decimal(str(value)):f}")


def total(amounts: Iterable[tuple[str, int]]) -> str:
    """Return the sum of amounts, each so many times, spelt as the first one that is not zero.

    :raises QuantityError: if one is no amount.
    """
    number, form = Decimal(0), ""
    for text, times in amounts:
        each, suffix = _parsed(text)
        form = form if number else suffix
        number += each * times
    return _spelt(number, form)


@lru_cache(maxsize=1024)
def _canonical(text: str) -> str:
    return _spelt(*_parsed(text))


def _spelt(number: Decimal, suffix: str) -> str:
    if suffix in _BINARY and number == number.to_integral_value() and abs(number) >= 1024:
        for unit in reversed(_BINARY):
            size = 1024 ** _BINARY[unit]
            if number % size == 0:
                return f"{int(number) // size}{unit}"
        return str(int(number))
    if suffix in _BINARY and number == number.to_integral_value():
        return str(int(number))
    if _EXPONENT.fullmatch(suffix):
        return _scaled(number, {f"e{power}" if power else "": power for power in _DECIMAL.values()})
    return _scaled(number, _DECIMAL)


def _scaled(number: Decimal, units: dict[str, int]) -> str:
    if number == 0:
        return "0"
    for unit, power in sorted(units.items(), key=lambda pair: -pair[1]):
        scaled = number.scaleb(-power)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{unit}"
    # Smaller than can be said: rounded up.
    return f"{int(number.scaleb(9).to_integral_value('ROUND_CEILING'))}n"


def _parsed(text: str) -> tuple[Decimal, str]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityError
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _BINARY:
        return number * 1024 ** _BINARY[suffix], suffix
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix]), suffix
    if exponent := _EXPONENT.fullmatch(suffix):
        return number.scaleb(int(exponent[1])), suffix
    raise QuantityError
