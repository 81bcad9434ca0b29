"""Durations as users write them: ``90``, ``90s``, ``5m``, ``1h30m``."""

import argparse
import re
from typing import Final

_UNITS: Final = {"h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def parse_duration(text: str) -> int:
    """Return the seconds of a duration, as the type of an argument."""
    found = _DURATION.fullmatch(text)
    seconds = sum(
        int(count or 0) * unit
        for count, unit in zip(found.groups() if found else (), _UNITS.values(), strict=False)
    )
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 90s, 5m or 1h30m")
    return seconds
