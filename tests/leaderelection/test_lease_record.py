import datetime
from typing import Any

import pytest

from dlctl.leaderelection import lease_record
from tests.leaderelection.lease_server import KEY

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=datetime.UTC)
LONG_AGO = "2020-01-01T00:00:00.000000Z"


def lease(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "dlctl"}, "spec": spec}


def test_times_have_six_digits_and_are_utc() -> None:
    assert lease_record.timestamp(NOW) == "2026-03-04T05:06:07.000089Z"
    whole = datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    assert lease_record.timestamp(whole) == "2026-01-01T00:00:00.000000Z"


def test_first_acquisition_is_no_transition() -> None:
    claimed = lease_record.acquired(lease_record.new_lease(KEY), "us", 15, NOW)
    assert claimed["metadata"] == {"namespace": "default", "name": "dlctl"}
    assert claimed["spec"] == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": lease_record.timestamp(NOW),
        "renewTime": lease_record.timestamp(NOW),
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize(
    ("spec", "transitions"),
    [
        pytest.param({"holderIdentity": "them", "leaseTransitions": 4}, 5, id="of another"),
        pytest.param({"leaseTransitions": 4}, 5, id="given back"),
        pytest.param({"holderIdentity": "", "leaseTransitions": 0}, 1, id="given back, empty"),
        pytest.param({"holderIdentity": "them"}, 1, id="of one who does not count"),
        pytest.param({"leaseTransitions": 2**31 - 1}, 2**31 - 1, id="as many as there can be"),
    ],
)
def test_transition_is_counted_and_dated(spec: dict[str, Any], transitions: int) -> None:
    claimed = lease_record.acquired(lease(acquireTime=LONG_AGO, **spec), "us", 15, NOW)
    assert claimed["spec"]["leaseTransitions"] == transitions
    assert claimed["spec"]["acquireTime"] == lease_record.timestamp(NOW)


def test_renewal_keeps_acquire_time_and_transitions() -> None:
    old = lease(holderIdentity="us", acquireTime=LONG_AGO, leaseTransitions=3, strategy="Other")
    claimed = lease_record.acquired(old, "us", 15, NOW)
    assert claimed["spec"]["acquireTime"] == LONG_AGO
    assert claimed["spec"]["leaseTransitions"] == 3
    assert claimed["spec"]["renewTime"] == lease_record.timestamp(NOW)
    assert claimed["spec"]["strategy"] == "Other"


def test_release_clears_the_holder_and_keeps_the_transitions() -> None:
    old = lease(holderIdentity="us", leaseDurationSeconds=15, leaseTransitions=3)
    released = lease_record.released(old, NOW)
    assert lease_record.holder(released) == ""
    assert released["spec"]["leaseDurationSeconds"] == 1
    assert released["spec"]["leaseTransitions"] == 3


def test_foreign_metadata_is_kept() -> None:
    metadata = {"name": "dlctl", "labels": {"team": "a"}, "annotations": {"note": "b"}}
    for changed in (
        lease_record.acquired({"metadata": metadata}, "us", 15, NOW),
        lease_record.released({"metadata": metadata}, NOW),
    ):
        assert changed["metadata"] == metadata


@pytest.mark.parametrize("written", [{}, {"spec": None}, {"spec": {}}])
def test_empty_lease_is_free_and_has_our_duration(written: dict[str, Any]) -> None:
    assert lease_record.holder(written) == ""
    assert lease_record.duration_s(written, 7.0) == 7.0
