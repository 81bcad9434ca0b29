"""The restarts of a job's replicas in its status on the wire. Reading never fails.

Each replica has an object, by name. Thousands of these would exceed etcd's limit, so beyond
``MAX_SINGLE`` the replicas of a type are a list, in groups that ended in the same way, each replica
one text.
"""

import datetime
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import msgspec

from dlctl.api.json_types import JSON, ReadOnlyJSON
from dlctl.api.status.job_status import RestartRecord
from dlctl.clock import EPOCH
from dlctl.dialects.field_reader import MAX_INT32, MAX_REPLICAS
from dlctl.dialects.status import status_codec as codec

# An object takes up to 190 bytes, and the names of its fields 150 in ``metadata.managedFields``;
# a text takes 60.
MAX_SINGLE: Final = 1000
# While a worker leaves its node, its successor has restarts as well.
_MAX_READ: Final = 2 * MAX_REPLICAS
FIELD: Final = "restarts"
_NAME: Final = re.compile(r"(.+)-(0|[1-9][0-9]*)", re.DOTALL)
# Of an index in a text.
_MAX_DIGITS: Final = 9
# Its index, failures, consecutive ends, seconds since the first end of the group, and pod UID.
_TEXT: Final = re.compile(r"([0-9]{1,9}) ([0-9]{1,10}) ([0-9]{1,10}) ([0-9]{1,12}) (.*)", re.DOTALL)
_SECOND: Final = datetime.timedelta(seconds=1)


def write(restarts: Mapping[str, RestartRecord]) -> JSON:
    """Return the wire form of the restarts by replica, such as ``worker-0``."""
    return write_single(restarts) if len(restarts) <= MAX_SINGLE else write_grouped(restarts)


def write_single(restarts: Mapping[str, RestartRecord]) -> JSON:
    """Return an object of each replica, by its name."""
    return {name: _write_one(restart) for name, restart in sorted(restarts.items())}


def write_grouped(restarts: Mapping[str, RestartRecord]) -> JSON:
    """Return the groups of replicas, by their type."""
    wire: JSON = {}
    groups: dict[tuple[str, str, int | None], dict[int, RestartRecord]] = {}
    for name in sorted(restarts):
        one, match = restarts[name], _NAME.fullmatch(name)
        if match is None or match[1] in restarts or not _is_groupable(match[2], one):
            # Only another writer can have written it.
            wire[name] = _write_one(one)
        else:
            groups.setdefault((match[1], one.reason, one.exit_code), {})[int(match[2])] = one
    for (type_, reason, exit_code), by_index in groups.items():
        wire.setdefault(type_, []).append(_write_group(reason, exit_code, by_index))
    return wire


def read(wire: JSON) -> dict[str, RestartRecord]:
    """Read the output of :func:`write`; malformed parts, and too many, count as absent."""
    lists = ((name, value) for name, value in wire.items() if isinstance(value, list))
    grouped = chain.from_iterable(_read_groups(type_, groups) for type_, groups in lists)
    single = (
        (name, _read_one(codec.mapping(value)))
        for name, value in wire.items()
        if not isinstance(value, list) and _NAME.fullmatch(name)
    )
    return dict(islice(chain(grouped, single), _MAX_READ))


def as_stored(wire: ReadOnlyJSON, status: msgspec.Raw) -> ReadOnlyJSON:
    """Return the wire form of a stored status with the restarts as they are stored.

    Their form differs if an earlier version of dlctl wrote them. A patch removes only what is known
    to be there.
    """
    dlctl_state = codec.mapping(wire.get(codec.OWN_STATE_FIELD))
    if FIELD not in wire and FIELD not in dlctl_state:
        return wire
    stored = codec.decode(status)
    if FIELD in dlctl_state:
        stored_state = codec.mapping(stored.get(codec.OWN_STATE_FIELD))
        return {**wire, codec.OWN_STATE_FIELD: {**dlctl_state, FIELD: stored_state.get(FIELD)}}
    return {**wire, FIELD: stored.get(FIELD)}


def _is_groupable(index: str, restart: RestartRecord) -> bool:
    counts = (restart.failures, restart.consecutive_ends)
    return len(index) <= _MAX_DIGITS and all(0 <= count <= MAX_INT32 for count in counts)


def _write_group(reason: str, exit_code: int | None, by_index: Mapping[int, RestartRecord]) -> JSON:
    first = min(one.finished_at for one in by_index.values()).replace(microsecond=0)
    wire: JSON = {
        "reason": reason,
        "finishedAt": codec.write_time(first),
        "replicas": [_text(index, by_index[index], first) for index in sorted(by_index)],
    }
    return wire if exit_code is None else {**wire, "exitCode": exit_code}


def _text(index: int, one: RestartRecord, first: datetime.datetime) -> str:
    later_s = (one.finished_at - first) // _SECOND
    return f"{index} {one.failures:d} {one.consecutive_ends:d} {later_s} {one.pod_uid}"


def _read_groups(type_: str, groups: list[Any]) -> Iterator[tuple[str, RestartRecord]]:
    for group in groups:
        if not isinstance(group, dict):
            continue
        reason, exit_code = codec.text(group, "reason"), codec.number(group, "exitCode")
        first = codec.read_time(group.get("finishedAt")) or EPOCH
        for match in map(_TEXT.fullmatch, codec.texts(group, "replicas")):
            if match is not None:
                index, failures, ends, later_s = map(int, match.groups()[:4])
                yield (
                    f"{type_}-{index}",
                    RestartRecord(
                        failures=failures,
                        consecutive_ends=ends,
                        pod_uid=match[5],
                        reason=reason,
                        finished_at=_later(first, later_s),
                        exit_code=exit_code,
                    ),
                )


def _later(time: datetime.datetime, seconds: int) -> datetime.datetime:
    try:
        # Most replicas of a group share its time.
        return time + seconds * _SECOND if seconds else time
    except OverflowError:
        return time


def _write_one(restart: RestartRecord) -> JSON:
    wire: JSON = {
        "failures": restart.failures,
        "consecutiveEnds": restart.consecutive_ends,
        "podUID": restart.pod_uid,
        "reason": restart.reason,
        "finishedAt": codec.write_time(restart.finished_at),
    }
    return wire if restart.exit_code is None else {**wire, "exitCode": restart.exit_code}


def _read_one(wire: JSON) -> RestartRecord:
    return RestartRecord(
        failures=codec.count(wire, "failures"),
        consecutive_ends=codec.count(wire, "consecutiveEnds"),
        pod_uid=codec.text(wire, "podUID"),
        reason=codec.text(wire, "reason"),
        finished_at=codec.read_time(wire.get("finishedAt")) or EPOCH,
        exit_code=codec.number(wire, "exitCode"),
    )
