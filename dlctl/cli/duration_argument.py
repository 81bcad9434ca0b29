"""Durations as people write them in an argument: ``90``, ``90s``, ``1m30s``, ``2h``."""

import argparse
import re
from typing import Final

_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0}
_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_DURATION: Final = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s?)?")


def duration_s(text: str) -> float:
    """Return the seconds of a duration of more than zero; the type of an argument."""
    found = _DURATION.fullmatch(text)
    parts = found.groups(default="0") if found else ("0",)
    seconds = sum(float(part) * unit for part, unit in zip(parts, _UNITS_S.values(), strict=False))
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 90, 90s, 1m30s or 2h")
    return seconds
