"""Durations: in kubectl's format, with tenths for short runs, and the shortest of waits. Pure."""


def human_duration(elapsed_s: float) -> str:
    """Return the elapsed time as kubectl prints it: two units while the smaller one matters."""
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


def precise_duration(seconds: float) -> str:
    """Return the duration of a run in its two largest units, such as ``1.2 s`` or ``1m30s``.

    kubectl's format has no tenths, and runs on a laptop may differ by less than a second.
    """
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{rest}s"


def shortest_wait(*waits_s: float | None) -> float | None:
    """Return the shortest of some waits in seconds; None means no wait, and 0 means now."""
    return min((wait_s for wait_s in waits_s if wait_s is not None), default=None)


def _two_units(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
