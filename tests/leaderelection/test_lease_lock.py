from typing import Any

import pytest

from dlctl.api.meta import LEASES
from dlctl.kube.errors import ApiError, UnexpectedResponseError, UnreachableError
from dlctl.leaderelection.lease_lock import LeaseLock, LeaseLostError
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.metrics import Metrics
from tests.leaderelection.lease_server import KEY, LEASE_PATH, LeaseServer
from tests.support.timing import ManualClock

THEIRS = {"holderIdentity": "them", "leaseDurationSeconds": 20, "leaseTransitions": 1}
CONFLICT = status.conflict(LEASES, KEY.name)


def fails(verb: str, **how: Any) -> Fault:
    return Fault(verb=verb, resource=LEASE_PATH, user_agent="ours", **how)


def slow_paths(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": KEY.name})


async def test_missing_lease_is_created(lease_lock: LeaseLock, lease_server: LeaseServer) -> None:
    assert await lease_lock.acquire() == 1000
    assert lease_server.spec == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:16:40.000000Z",
        "renewTime": "1970-01-01T00:16:40.000000Z",
        "leaseTransitions": 0,
    }


async def test_lease_of_another_is_acquired_only_after_its_observed_expiry(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    await lease_server.put(THEIRS)
    assert await lease_lock.acquire() is None
    clock.seconds += 19.9
    assert await lease_lock.acquire() is None
    assert lease_lock.available_in_s == pytest.approx(0.1)
    clock.seconds += 0.1
    assert await lease_lock.acquire() == clock.seconds
    assert (lease_server.holder, lease_server.spec["leaseTransitions"]) == ("us", 2)


async def test_lease_deleted_under_another_is_acquired_only_after_its_observed_expiry(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    await lease_server.put(THEIRS)
    assert await lease_lock.acquire() is None
    await lease_server.user.delete(LEASES, KEY)
    clock.seconds += 19.9
    assert await lease_lock.acquire() is None
    assert not await lease_server.user.delete(LEASES, KEY)
    clock.seconds += 0.1
    assert await lease_lock.acquire() == clock.seconds


@pytest.mark.parametrize("year", ["1999", "2099"])
async def test_clocks_of_others_are_ignored(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock, year: str
) -> None:
    then = f"{year}-01-01T00:00:00.000000Z"
    await lease_server.put({**THEIRS, "renewTime": then, "acquireTime": then})
    assert await lease_lock.acquire() is None
    clock.seconds += 20
    assert await lease_lock.acquire() is not None


async def test_each_renewal_by_another_restarts_the_wait(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    for second in range(3):
        renewed = f"2026-01-01T00:00:0{second}.000000Z"
        await lease_server.put({**THEIRS, "renewTime": renewed})
        assert await lease_lock.acquire() is None
        clock.seconds += 19


async def test_annotation_by_a_third_party_is_no_renewal(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    await lease_server.put(THEIRS)
    await lease_lock.acquire()
    clock.seconds += 20
    await lease_server.put(THEIRS, annotations={"note": "hello"})
    assert await lease_lock.acquire() is not None


@pytest.mark.parametrize("spec", [{"leaseTransitions": 1}, {"holderIdentity": ""}])
async def test_lease_without_a_holder_is_acquired_at_once(
    lease_lock: LeaseLock, lease_server: LeaseServer, spec: dict[str, Any]
) -> None:
    await lease_server.put(spec)
    assert await lease_lock.acquire() is not None


async def test_own_lease_is_kept_without_a_transition(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_server.put({**THEIRS, "holderIdentity": "us"})
    assert await lease_lock.acquire() is not None
    assert lease_server.spec["leaseTransitions"] == 1


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_lost_race_is_no_error(
    lease_lock: LeaseLock, lease_server: LeaseServer, verb: str
) -> None:
    if verb == "update":
        await lease_server.put({})
    taken = status.already_exists(LEASES, KEY.name) if verb == "create" else CONFLICT
    lease_server.server.faults.add(fails(verb, status=taken))
    assert await lease_lock.acquire() is None


async def test_renewals_do_not_read(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock, metrics: Metrics
) -> None:
    await lease_lock.acquire()
    for _ in range(2):
        clock.seconds += 2
        assert await lease_lock.renew() == clock.seconds
    assert lease_server.requests("ours") == ["create", "get", "update", "update"]
    assert slow_paths(metrics) == 0
    assert lease_server.spec["acquireTime"] == "1970-01-01T00:16:40.000000Z"
    assert lease_server.spec["renewTime"] == "1970-01-01T00:16:44.000000Z"


async def test_conflicting_renewal_reads_and_retries(
    lease_lock: LeaseLock, lease_server: LeaseServer, metrics: Metrics
) -> None:
    await lease_lock.acquire()
    await lease_server.put(lease_server.spec, labels={"team": "a"}, annotations={"note": "b"})
    await lease_lock.renew()
    assert lease_server.requests("ours") == ["create", "get", "get", "update", "update"]
    assert slow_paths(metrics) == 1
    assert lease_server.lease["metadata"]["labels"] == {"team": "a"}
    assert lease_server.lease["metadata"]["annotations"] == {"note": "b"}


async def test_renewal_with_a_lost_response_is_found_by_the_next(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    # Twice: on a reused connection the HTTP library repeats a PUT.
    lease_server.server.faults.add(fails("update", reset="after", times=2))
    with pytest.raises(UnreachableError):
        await lease_lock.renew()
    await lease_lock.renew()
    assert lease_server.holder == "us"


@pytest.mark.parametrize("body", [b'{"error": "please log in"}', b'{"kind":"Lea'])
async def test_response_of_a_proxy_is_no_renewal(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock, body: bytes
) -> None:
    await lease_lock.acquire()
    clock.seconds += 1
    lease_server.server.faults.add(fails("update", answer=(200, body)))
    with pytest.raises(UnexpectedResponseError):
        await lease_lock.renew()
    # Nor a loss.
    clock.seconds += 1
    lease_server.server.faults.add(fails("get", answer=(200, body)))
    with pytest.raises(UnexpectedResponseError):
        await lease_lock.renew()
    await lease_lock.renew()


async def test_acquisition_with_a_lost_response_is_found_by_the_next(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    await lease_server.put({"leaseTransitions": 6})
    lease_server.server.faults.add(fails("update", reset="after"))
    # The HTTP library has repeated it, and conflicted with our own first write.
    assert await lease_lock.acquire() is None
    assert lease_server.holder == "us"
    clock.seconds += 1
    assert await lease_lock.acquire() == clock.seconds
    assert lease_server.spec["leaseTransitions"] == 7


@pytest.mark.parametrize("now", ["them", ""])
async def test_lease_acquired_by_another_is_lost_at_once(
    lease_lock: LeaseLock, lease_server: LeaseServer, now: str
) -> None:
    await lease_lock.acquire()
    await lease_server.put({**THEIRS, "holderIdentity": now})
    with pytest.raises(LeaseLostError, match=now or "nobody"):
        await lease_lock.renew()
    assert lease_server.holder == now


async def test_lease_deleted_under_its_holder_is_recreated(
    lease_lock: LeaseLock, lease_server: LeaseServer, clock: ManualClock
) -> None:
    await lease_server.put({"leaseTransitions": 6})
    await lease_lock.acquire()
    began = lease_server.spec["acquireTime"]
    await lease_server.user.delete(LEASES, KEY)
    clock.seconds += 2
    await lease_lock.renew()
    assert (lease_server.holder, lease_server.spec["leaseTransitions"]) == ("us", 7)
    assert lease_server.spec["acquireTime"] == began


async def test_lease_deleted_and_created_by_another_is_lost(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    await lease_server.user.delete(LEASES, KEY)
    await lease_server.put(THEIRS)
    with pytest.raises(LeaseLostError):
        await lease_lock.renew()


async def test_rejection_is_raised_and_the_next_attempt_is_normal(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    lease_server.server.faults.add(fails("update", status=status.internal_error("no"), times=2))
    with pytest.raises(ApiError):
        await lease_lock.renew()
    await lease_lock.renew()


async def test_release_leaves_the_lease_free(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    await lease_lock.release()
    assert lease_server.lease
    assert (lease_server.holder, lease_server.spec["leaseDurationSeconds"]) == ("", 1)


async def test_release_survives_a_conflict(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    lease_server.server.faults.add(fails("update", status=CONFLICT))
    await lease_lock.release()
    assert lease_server.holder == ""


async def test_release_keeps_a_lease_acquired_by_another(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_lock.acquire()
    await lease_server.put(THEIRS)
    await lease_lock.release()
    assert lease_server.spec == THEIRS


async def test_release_releases_a_lease_whose_acquisition_was_not_confirmed(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    lease_server.server.faults.add(fails("create", reset="after"))
    with pytest.raises(UnreachableError):
        await lease_lock.acquire()
    assert lease_server.holder == "us"
    await lease_lock.release()
    assert lease_server.holder == ""


async def test_candidate_that_never_acquired_the_lease_releases_nothing(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    await lease_server.put(THEIRS)
    await lease_lock.acquire()
    before = lease_server.requests("ours")
    await lease_lock.release()
    assert lease_server.requests("ours") == before


async def test_request_without_a_response_times_out_after_half_the_deadline(
    lease_lock: LeaseLock, lease_server: LeaseServer
) -> None:
    lease_lock.timing = LeaseTiming(lease_s=0.3, renew_s=0.1, retry_s=0.05)
    lease_server.server.faults.add(fails("get", delay_s=60))
    with pytest.raises(TimeoutError):
        await lease_lock.acquire()


def test_identity_must_not_be_empty(clock: ManualClock, metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="identity"):
        LeaseLock(None, KEY, "", LeaseTiming(), clock, metrics)  # type: ignore[arg-type]
