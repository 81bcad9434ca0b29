"""The restarts of few and of very many replicas: written, read back, small, and malformed."""

import datetime
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.api.status.job_status import RestartRecord
from dlctl.dialects.field_reader import MAX_INT32, MAX_REPLICAS
from dlctl.dialects.status import restarts_codec, status_codec
from dlctl.kube.merge_diff import merge_diff
from dlctl.local.apiserver.patches.merge_patch import merged
from tests.builders import NOW
from tests.dialects.statuses import CODES, COUNT, REPLICA_NAMES, TEXT, TIMES

COUNTS = COUNT | st.integers(min_value=0, max_value=MAX_INT32)
RECORDS = st.builds(
    RestartRecord,
    COUNTS,
    COUNTS,
    st.uuids().map(str) | TEXT,
    st.sampled_from(["Error", "Evicted"]) | TEXT,
    st.sampled_from([NOW, NOW + datetime.timedelta(seconds=9)])
    | TIMES
    | st.just(datetime.datetime.min.replace(tzinfo=datetime.UTC)),
    CODES,
)
RESTARTS = st.dictionaries(REPLICA_NAMES, RECORDS, max_size=6)
Write = Callable[[Mapping[str, RestartRecord]], JSON]
FORMS = st.sampled_from([restarts_codec.write_single, restarts_codec.write_grouped])


def stored(wire: JSON) -> JSON:
    """Return it as the API server does."""
    return dict(msgspec.json.decode(msgspec.json.encode(wire)))


@given(restarts=RESTARTS, write=FORMS)
def test_what_is_written_is_read_back(restarts: dict[str, RestartRecord], write: Write) -> None:
    wire = stored(write(restarts))
    again = restarts_codec.read(wire)
    assert again == restarts
    assert stored(write(again)) == wire


@pytest.mark.parametrize("count", [-1, -(2**63), MAX_INT32 + 1, True, 0.5, "1"])
def test_count_that_no_job_can_have_counts_as_absent(count: object) -> None:
    wire: JSON = {"failures": count, "consecutiveEnds": count}
    record = restarts_codec.read({"worker-0": wire})["worker-0"]
    assert (record.failures, record.consecutive_ends) == (0, 0)
    assert type(record.failures) is int


@pytest.mark.parametrize(
    ("count", "type_"),
    [(restarts_codec.MAX_SINGLE, dict), (restarts_codec.MAX_SINGLE + 1, list)],
)
def test_restarts_of_many_replicas_are_grouped(count: int, type_: type) -> None:
    restarts = {f"worker-{n}": RestartRecord(1, 2, "u", "Error", NOW, 1) for n in range(count)}
    assert {type(value) for value in restarts_codec.write(restarts).values()} == {type_}


def test_few_restarts_have_an_object_of_each_replica() -> None:
    uid = "0f3e5d9c-5d5c-4c39-8a51-7a3f1f6f0f0e"
    restarts = {"worker-0": RestartRecord(1, 2, uid, "Error", NOW, 1)}
    record = {
        "failures": 1,
        "consecutiveEnds": 2,
        "podUID": uid,
        "reason": "Error",
        "finishedAt": "2026-01-01T12:00:00Z",
        "exitCode": 1,
    }
    assert restarts_codec.write(restarts) == {"worker-0": record}


def test_many_restarts_are_grouped_by_how_the_replicas_ended() -> None:
    later = NOW + datetime.timedelta(minutes=1, milliseconds=1)
    restarts = {
        "worker-10": RestartRecord(1, 2, "u10", "Error", later, 1),
        "worker-9": RestartRecord(1, 1, "u9", "Error", NOW, 1),
        "worker-8": RestartRecord(0, 1, "u8", "Evicted", later),
        "launcher-0": RestartRecord(3, 4, "", "Deleted", NOW),
    }
    assert restarts_codec.write_grouped(restarts) == {
        "launcher": [
            {"reason": "Deleted", "finishedAt": "2026-01-01T12:00:00Z", "replicas": ["0 3 4 0 "]}
        ],
        "worker": [
            {
                "reason": "Error",
                "finishedAt": "2026-01-01T12:00:00Z",
                "replicas": ["9 1 1 0 u9", "10 1 2 60 u10"],
                "exitCode": 1,
            },
            {"reason": "Evicted", "finishedAt": "2026-01-01T12:01:00Z", "replicas": ["8 0 1 0 u8"]},
        ],
    }


@pytest.mark.parametrize(
    ("reason", "code", "spread_s"),
    [("Error", 1, 0), ("OOMKilled", 137, 0), ("Evicted", None, 0), ("Error", 1, 86_400)],
    ids=["exit code", "out of memory", "evicted", "over a day"],
)
@pytest.mark.parametrize("type_", ["worker", "scheduler"])
def test_restarts_of_all_replicas_of_the_largest_job_are_less_than_half_of_what_etcd_takes(
    type_: str, reason: str, code: int | None, spread_s: int
) -> None:
    draw = random.Random(0)
    restarts = {
        f"{type_}-{index}": RestartRecord(
            failures=draw.randint(1, 1000),
            consecutive_ends=draw.randint(1, 1000),
            pod_uid=str(uuid.UUID(int=draw.getrandbits(128))),
            reason=reason,
            finished_at=NOW + datetime.timedelta(seconds=draw.randint(0, spread_s)),
            exit_code=code,
        )
        for index in range(MAX_REPLICAS)
    }
    wire = restarts_codec.write(restarts)
    assert restarts_codec.read(stored(wire)) == restarts
    assert len(msgspec.json.encode(wire)) < 1.5 * 2**20 / 2
    # The names of fields are repeated in metadata.managedFields, except in lists.
    assert list(wire) == [type_]


@pytest.mark.parametrize("field", ["restarts", "dlctl"])
@given(before=RESTARTS, after=RESTARTS, old_form=FORMS, new_form=FORMS)
def test_patch_replaces_restarts_in_any_stored_form(
    field: str,
    before: dict[str, RestartRecord],
    after: dict[str, RestartRecord],
    old_form: Write,
    new_form: Write,
) -> None:
    def status(restarts: JSON) -> JSON:
        part = {"restarts": restarts} if restarts else {}
        return {"dlctl": {"phase": "Running", **part}} if field == "dlctl" else part

    found = status(stored(old_form(before)))
    known = restarts_codec.as_stored(
        status(stored(new_form(before))), msgspec.Raw(msgspec.json.encode(found))
    )
    new = status(stored(new_form(after)))
    assert merged(found, merge_diff(known, new)) == new


def test_restarts_that_are_not_written_leave_what_another_operator_has_stored() -> None:
    raw = msgspec.Raw(b'{"restarts":3,"dlctl":{"restarts":4}}')
    wires: list[JSON] = [{}, {"dlctl": {"phase": "Running"}}, {"conditions": []}]
    for wire in wires:
        assert restarts_codec.as_stored(wire, raw) == wire


@pytest.mark.parametrize(
    "groups",
    [
        [None, 3, [], "0 1 1 0 u"],
        [{"replicas": None}],
        [{"replicas": {"0 1 1 0 u": 1}}],
        [
            {
                "replicas": [
                    None,
                    3,
                    "",
                    "0 1 1 0",
                    "x 1 1 0 u",
                    "-1 1 1 0 u",
                    "0 1 1 0.5 u",
                    "٣ 1 1 0 u",
                ]
            }
        ],
    ],
)
def test_malformed_group_is_ignored(groups: Any) -> None:
    assert restarts_codec.read({"worker": groups}) == {}


def test_time_beyond_all_years_is_that_of_the_group() -> None:
    group = {"finishedAt": "9999-01-01T00:00:00Z", "replicas": [f"0 1 1 {10**12 - 1} u"]}
    [record] = restarts_codec.read({"worker": [group]}).values()
    assert status_codec.write_time(record.finished_at) == group["finishedAt"]


@pytest.mark.parametrize("name", ["", "worker", "worker-", "-1", "worker-01", "worker-٣"])
def test_name_that_no_replica_has_is_not_read(name: str) -> None:
    assert restarts_codec.read({name: {"failures": 1}}) == {}


def test_more_replicas_than_a_job_may_have_are_not_read() -> None:
    indexes = range(9 * MAX_REPLICAS)
    single: JSON = {f"worker-{index}": {} for index in indexes}
    grouped: JSON = {"ps": [{"replicas": [f"{index} 0 0 0 " for index in indexes]}]}
    for wire in (single, grouped, single | grouped):
        assert len(restarts_codec.read(wire)) == 2 * MAX_REPLICAS
