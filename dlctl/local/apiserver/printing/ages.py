"""Ages as kubectl prints them: ``5m30s``, ``3d``."""

import datetime

_UNKNOWN = "<unknown>"


def age_of(timestamp: str | None, now: datetime.datetime) -> str:
    if not timestamp:
        return _UNKNOWN
    try:
        since = datetime.datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return human_duration((now - since).total_seconds())


def human_duration(elapsed_s: float) -> str:
    """Return the elapsed time: two units while the smaller one matters."""
    seconds = int(elapsed_s)
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
