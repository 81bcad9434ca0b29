import datetime
from collections.abc import Sequence

import attrs
import pytest

from dlctl.api.meta import PODS, SERVICES, UID, Object, ObjectMeta
from dlctl.controller.expectations import Expectations
from tests.support.timing import ManualClock

NAMESPACE = "ml"
OWNER = UID("job")
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@attrs.define
class FakeStore:
    """A store at some version, in which all objects have one owner."""

    resource_version: str = ""
    objects: Sequence[Object] = ()

    def owned_by(self, namespace: str, uid: UID) -> Sequence[Object]:
        return self.objects if (namespace, uid) == (NAMESPACE, OWNER) else ()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0.0)


@pytest.fixture
def expectations(clock: ManualClock) -> Expectations:
    return Expectations(clock)


def pod(uid: str, *, terminating: bool = False) -> Object:
    deleted = NOW if terminating else None
    return Object(ObjectMeta(name=uid, uid=UID(uid), deletion_timestamp=deleted))


def test_owner_that_has_written_nothing_is_ready(expectations: Expectations) -> None:
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore()})


@pytest.mark.parametrize(
    ("version", "ready"),
    [
        pytest.param("", False, id="store has not synced"),
        pytest.param("99", False, id="fewer digits, but a greater string"),
        pytest.param("100", True, id="the same version"),
        pytest.param("1000", True, id="later"),
    ],
)
def test_owner_is_ready_once_the_store_has_the_written_version(
    expectations: Expectations, version: str, ready: bool
) -> None:
    expectations.expect_write(OWNER, PODS, "100")

    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore(version)}) is ready


def test_writes_are_not_awaited_from_a_store_that_has_gone_back_to_a_backup(
    expectations: Expectations,
) -> None:
    expectations.expect_write(OWNER, PODS, "100")

    versions = ("98", "99", "99", "50", "50")
    seen = [expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore(v)}) for v in versions]
    assert seen == [False, False, False, True, True]


def test_highest_written_version_counts_whatever_the_order_of_responses(
    expectations: Expectations,
) -> None:
    for version in ("9", "11", "10"):
        expectations.expect_write(OWNER, PODS, version)

    assert not expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("10")})
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("11")})


def test_all_written_resources_must_catch_up(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, PODS, "5")
    expectations.expect_write(OWNER, SERVICES, "6")

    assert not expectations.satisfied(
        NAMESPACE, OWNER, {PODS: FakeStore("9"), SERVICES: FakeStore("5")}
    )
    assert expectations.satisfied(
        NAMESPACE, OWNER, {PODS: FakeStore("9"), SERVICES: FakeStore("6")}
    )


def test_fulfilled_expectation_is_dropped(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, PODS, "5")
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("5")})

    # A store that starts over shows less, but the expectation is already fulfilled.
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("")})
    assert len(expectations) == 0


def test_unfulfilled_expectation_stays(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, PODS, "5")

    for _ in range(2):
        assert not expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("4")})


def test_writes_for_one_owner_do_not_delay_another(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, PODS, "5")

    assert expectations.satisfied(NAMESPACE, UID("another"), {PODS: FakeStore("4")})


def test_job_recreated_under_the_same_name_has_no_expectations(
    expectations: Expectations,
) -> None:
    expectations.expect_write(OWNER, PODS, "5")

    assert expectations.satisfied(NAMESPACE, UID("job, born again"), {PODS: FakeStore("4")})


def test_deletion_is_observed_when_the_object_is_terminating_or_gone(
    expectations: Expectations,
) -> None:
    expectations.expect_deletion(OWNER, PODS, UID("a"))
    expectations.expect_deletion(OWNER, PODS, UID("b"))

    alive = FakeStore("7", [pod("a", terminating=True), pod("b"), pod("c")])
    assert not expectations.satisfied(NAMESPACE, OWNER, {PODS: alive})
    gone = FakeStore("8", [pod("a", terminating=True), pod("c")])
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: gone})


def test_deletion_is_not_confused_with_a_new_object_of_the_same_name(
    expectations: Expectations,
) -> None:
    expectations.expect_deletion(OWNER, PODS, UID("old"))

    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("7", [pod("new")])})


def test_deletion_is_not_observed_by_a_store_that_lacks_the_creation(
    expectations: Expectations,
) -> None:
    expectations.expect_write(OWNER, PODS, "5")
    expectations.expect_deletion(OWNER, PODS, UID("a"))

    assert not expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("4")})
    assert not expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("5", [pod("a")])})
    assert expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("6")})


def test_expectation_expires_five_minutes_after_the_last_write(
    expectations: Expectations, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    behind = {PODS: FakeStore("1")}
    expectations.expect_write(OWNER, PODS, "5")
    clock.seconds = 200
    expectations.expect_write(OWNER, PODS, "6")
    clock.seconds = 500
    assert not expectations.satisfied(NAMESPACE, OWNER, behind)

    clock.seconds = 501

    assert expectations.satisfied(NAMESPACE, OWNER, behind)
    assert [record.getMessage() for record in caplog.records] == [
        "own writes were not seen in time"
    ]
    assert expectations.satisfied(NAMESPACE, OWNER, behind)


def test_deleted_owner_can_be_forgotten(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, PODS, "5")
    expectations.forget(OWNER)
    expectations.forget(UID("unheard of"))

    assert len(expectations) == 0


def test_unchecked_expectations_do_not_accumulate(
    expectations: Expectations, clock: ManualClock
) -> None:
    for number in range(1000):
        clock.seconds = number * 10.0
        expectations.expect_write(UID(str(number)), PODS, "5")

    assert len(expectations) == 31


def test_write_to_a_resource_without_a_store_raises(expectations: Expectations) -> None:
    expectations.expect_write(OWNER, SERVICES, "5")

    with pytest.raises(KeyError):
        expectations.satisfied(NAMESPACE, OWNER, {PODS: FakeStore("9")})
