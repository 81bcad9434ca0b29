"""Ages as kubectl prints them: ``5m30s``, ``3d``."""

import datetime

from dlctl.durations import human_duration

_UNKNOWN = "<unknown>"


def age_of(timestamp: str | None, now: datetime.datetime) -> str:
    if not timestamp:
        return _UNKNOWN
    try:
        since = datetime.datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return human_duration((now - since).total_seconds())
