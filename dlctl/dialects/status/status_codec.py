"""The common parts of all dialects' statuses on the wire, such as conditions and times.

Reading never fails: malformed fields count as absent.
"""

import datetime
import enum
from typing import Any, Final, TypeVar

import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.status.conditions import Condition
from dlctl.api.status.job_status import Failure
from dlctl.clock import EPOCH
from dlctl.dialects.field_reader import MAX_INT32

# The field of a status with dlctl's own state; no other operator writes it.
OWN_STATE_FIELD: Final = "dlctl"

E = TypeVar("E", bound=enum.StrEnum)


def write_condition(condition: Condition) -> JSON:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        **({"reason": condition.reason} if condition.reason else {}),
        "message": condition.message,
        "lastUpdateTime": write_time(condition.last_update_time),
        "lastTransitionTime": write_time(condition.last_transition_time),
    }


def read_conditions(wire: JSON) -> tuple[Condition, ...]:
    """Return a condition of each type, a true one if there is one; without a type it is none."""
    by_type: dict[str, JSON] = {}
    for each in mappings(wire, "conditions"):
        kept = by_type.setdefault(text(each, "type"), each)
        if kept.get("status") != "True" and each.get("status") == "True":
            by_type[text(each, "type")] = each
    return tuple(_read_condition(each) for type_, each in by_type.items() if type_)


def _read_condition(wire: JSON) -> Condition:
    since = read_time(wire.get("lastTransitionTime")) or EPOCH
    return Condition(
        type=text(wire, "type"),
        status=wire.get("status") == "True",
        reason=text(wire, "reason"),
        message=text(wire, "message"),
        last_transition_time=since,
        last_update_time=read_time(wire.get("lastUpdateTime")) or since,
    )


def write_failure(failure: Failure) -> JSON:
    wire: JSON = {
        "replica": failure.replica,
        "pod": failure.pod,
        "reason": failure.reason,
        "message": failure.message,
        "time": write_time(failure.time),
        "exitCode": failure.exit_code,
    }
    # A job-level failure names no replica.
    return {name: value for name, value in wire.items() if value not in ("", None)}


def read_failure(wire: JSON) -> Failure:
    return Failure(
        replica=text(wire, "replica"),
        pod=text(wire, "pod"),
        reason=text(wire, "reason"),
        message=text(wire, "message"),
        time=read_time(wire.get("time")) or EPOCH,
        exit_code=number(wire, "exitCode"),
    )


def write_time(time: datetime.datetime | None) -> str | None:
    if time is None:
        return None
    # Not strftime, which writes year 1 with one digit: some operators write Go's zero time.
    utc = time.astimezone(datetime.UTC).replace(microsecond=0, tzinfo=None)
    return f"{utc.isoformat()}Z"


def read_time(text: Any) -> datetime.datetime | None:
    try:
        time = datetime.datetime.fromisoformat(text)
        return time.astimezone(datetime.UTC) if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    except (OverflowError, TypeError, ValueError):
        return None


def decode(raw: msgspec.Raw) -> JSON:
    """Decode a status; one that is not an object, or has an invalid number, is empty."""
    try:
        return mapping(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return {}


def mapping(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def mappings(wire: JSON, name: str) -> list[JSON]:
    items = wire.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def texts(wire: JSON, name: str) -> list[str]:
    """Return the strings of a list; others are left out."""
    value = wire.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(wire: JSON, name: str) -> str:
    value = wire.get(name)
    return value if isinstance(value, str) else ""


def number(wire: JSON, name: str) -> int | None:
    value = wire.get(name)
    return value if isinstance(value, int) else None


def count(wire: JSON, name: str) -> int:
    """Return a number of things, which is never negative; 0 for one that no job can have."""
    value = wire.get(name)
    return value if type(value) is int and 0 <= value <= MAX_INT32 else 0


def enum_member(options: type[E], value: Any, default: E) -> E:
    return next((option for option in options if option == value), default)
