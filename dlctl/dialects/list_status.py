"""The status of the list dialects: mx-operator's words, and beside them what they lacked.

``phase``, ``state``, ``reason`` and ``replicaStatuses`` are spelt as those systems spell them.
Added are conditions, times, the restarts of each replica and the first cause of a failure.
"""

import datetime
from typing import Any, TypeVar

import msgspec

from dlctl.api.conditions import Condition
from dlctl.api.status import Failure, JobPhase, JobState, JobStatus, ReplicaStatus, Restart
from dlctl.dialects import indexes

JSON = dict[str, Any]
E = TypeVar("E", JobPhase, JobState)


def write(status: JobStatus, tag: str) -> JSON:
    """Return the wire form; fields that hold nothing are left out, but the four old ones."""
    wire: JSON = {
        "phase": status.phase,
        "state": status.state,
        "reason": status.reason,
        "replicaStatuses": [_write_replica(r, tag) for r in status.replica_statuses],
        "conditions": [_write_condition(condition) for condition in status.conditions],
        "observedGeneration": status.observed_generation,
        "startTime": _write_time(status.start_time),
        "completionTime": _write_time(status.completion_time),
        "restarts": {name: _write_restart(r) for name, r in sorted(status.restarts.items())},
        "failure": _write_failure(status.failure) if status.failure else None,
    }
    kept = {"phase", "state", "reason", "replicaStatuses"}
    return {name: value for name, value in wire.items() if value or name in kept}


def read(raw: msgspec.Raw, tag: str) -> JobStatus:
    """Read a status back; whatever is missing or malformed counts as not there."""
    wire = _map(msgspec.json.decode(raw))
    restarts = _map(wire.get("restarts"))
    failure = _map(wire.get("failure"))
    return JobStatus(
        phase=_member(JobPhase, wire.get("phase"), JobPhase.NEW),
        state=_member(JobState, wire.get("state"), JobState.UNKNOWN),
        reason=_text(wire, "reason"),
        replica_statuses=tuple(_read_replica(r, tag) for r in _maps(wire, "replicaStatuses")),
        conditions=tuple(_read_condition(c) for c in _maps(wire, "conditions")),
        observed_generation=_number(wire, "observedGeneration") or 0,
        start_time=_read_time(wire.get("startTime")),
        completion_time=_read_time(wire.get("completionTime")),
        restarts={name: _read_restart(_map(restart)) for name, restart in restarts.items()},
        failure=_read_failure(failure) if failure else None,
    )


def _type_field(tag: str) -> str:
    return f"{tag}_replica_type" if tag else "replicaType"


def _write_replica(replica: ReplicaStatus, tag: str) -> JSON:
    wire: JSON = {
        _type_field(tag): replica.type.upper(),
        "state": replica.state,
        "ReplicasStates": {state: count for state, count in replica.counts.items() if count},
    }
    if replica.completed:
        wire["completedIndexes"] = indexes.write(replica.completed)
    return wire


def _read_replica(wire: JSON, tag: str) -> ReplicaStatus:
    counts = _map(wire.get("ReplicasStates"))
    return ReplicaStatus(
        type=_text(wire, _type_field(tag)).lower(),
        state=_member(JobState, wire.get("state"), JobState.UNKNOWN),
        counts={state: count for state in JobState if (count := _number(counts, state))},
        completed=indexes.read(_text(wire, "completedIndexes")),
    )


def _write_condition(condition: Condition) -> JSON:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": _write_time(condition.updated),
        "lastTransitionTime": _write_time(condition.since),
    }


def _read_condition(wire: JSON) -> Condition:
    since = _read_time(wire.get("lastTransitionTime")) or _EPOCH
    return Condition(
        type=_text(wire, "type"),
        status=wire.get("status") == "True",
        reason=_text(wire, "reason"),
        message=_text(wire, "message"),
        since=since,
        updated=_read_time(wire.get("lastUpdateTime")) or since,
    )


def _write_restart(restart: Restart) -> JSON:
    wire: JSON = {
        "failures": restart.failures,
        "tries": restart.tries,
        "podUID": restart.pod_uid,
        "reason": restart.reason,
        "ended": _write_time(restart.ended),
    }
    return wire if restart.exit_code is None else {**wire, "exitCode": restart.exit_code}


def _read_restart(wire: JSON) -> Restart:
    return Restart(
        failures=_number(wire, "failures") or 0,
        tries=_number(wire, "tries") or 0,
        pod_uid=_text(wire, "podUID"),
        reason=_text(wire, "reason"),
        ended=_read_time(wire.get("ended")) or _EPOCH,
        exit_code=_number(wire, "exitCode"),
    )


def _write_failure(failure: Failure) -> JSON:
    wire: JSON = {
        "replica": failure.replica,
        "pod": failure.pod,
        "reason": failure.reason,
        "message": failure.message,
        "time": _write_time(failure.time),
        "exitCode": failure.exit_code,
    }
    # What failed as a whole names no replica.
    return {name: value for name, value in wire.items() if value not in ("", None)}


def _read_failure(wire: JSON) -> Failure:
    return Failure(
        replica=_text(wire, "replica"),
        pod=_text(wire, "pod"),
        reason=_text(wire, "reason"),
        message=_text(wire, "message"),
        time=_read_time(wire.get("time")) or _EPOCH,
        exit_code=_number(wire, "exitCode"),
    )


_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def _write_time(time: datetime.datetime | None) -> str | None:
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if time else None


def _read_time(text: Any) -> datetime.datetime | None:
    try:
        time = datetime.datetime.fromisoformat(text)
        return time.astimezone(datetime.UTC) if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    except (OverflowError, TypeError, ValueError):
        return None


def _map(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _maps(wire: JSON, name: str) -> list[JSON]:
    items = wire.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _text(wire: JSON, name: str) -> str:
    value = wire.get(name)
    return value if isinstance(value, str) else ""


def _number(wire: JSON, name: str) -> int | None:
    value = wire.get(name)
    return value if isinstance(value, int) else None


def _member(options: type[E], value: Any, default: E) -> E:
    return next((option for option in options if option == value), default)
