from typing import Any

import pytest

from dlctl.api.meta import LEASES
from dlctl.kube.errors import ApiError, UnreachableError
from dlctl.leaderelection.claim import Claim, LeaseLostError
from dlctl.leaderelection.timing import Timing
from dlctl.local.apiserver import status
from dlctl.local.apiserver.faults import Fault
from dlctl.metrics import Metrics
from tests.leaderelection.conftest import KEY, LEASE_PATH, Court, FakeClock

THEIRS = {"holderIdentity": "them", "leaseDurationSeconds": 20, "leaseTransitions": 1}
CONFLICT = status.conflict(LEASES, KEY.name)


def fails(verb: str, **how: Any) -> Fault:
    return Fault(verb=verb, resource=LEASE_PATH, user_agent="ours", **how)


def slow_paths(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": KEY.name})


async def test_lease_that_is_not_there_is_created(claim: Claim, court: Court) -> None:
    assert await claim.take() == 1000
    assert court.spec == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:16:40.000000Z",
        "renewTime": "1970-01-01T00:16:40.000000Z",
        "leaseTransitions": 0,
    }


async def test_lease_of_another_is_left_alone_until_it_ran_out_before_our_eyes(
    claim: Claim, court: Court, clock: FakeClock
) -> None:
    await court.put(THEIRS)
    assert await claim.take() is None
    clock.seconds += 19.9
    assert await claim.take() is None
    assert claim.free_in_s == pytest.approx(0.1)
    clock.seconds += 0.1
    assert await claim.take() == clock.seconds
    assert (court.holder, court.spec["leaseTransitions"]) == ("us", 2)


@pytest.mark.parametrize("year", ["1999", "2099"])
async def test_clocks_of_others_are_not_believed(
    claim: Claim, court: Court, clock: FakeClock, year: str
) -> None:
    then = f"{year}-01-01T00:00:00.000000Z"
    await court.put({**THEIRS, "renewTime": then, "acquireTime": then})
    assert await claim.take() is None
    clock.seconds += 20
    assert await claim.take() is not None


async def test_each_renewal_by_another_starts_the_wait_anew(
    claim: Claim, court: Court, clock: FakeClock
) -> None:
    for second in range(3):
        renewed = f"2026-01-01T00:00:0{second}.000000Z"
        await court.put({**THEIRS, "renewTime": renewed})
        assert await claim.take() is None
        clock.seconds += 19


async def test_note_of_a_third_is_no_renewal(claim: Claim, court: Court, clock: FakeClock) -> None:
    await court.put(THEIRS)
    await claim.take()
    clock.seconds += 20
    await court.put(THEIRS, annotations={"note": "hello"})
    assert await claim.take() is not None


@pytest.mark.parametrize("spec", [{"leaseTransitions": 1}, {"holderIdentity": ""}])
async def test_lease_without_a_holder_is_taken_at_once(
    claim: Claim, court: Court, spec: dict[str, Any]
) -> None:
    await court.put(spec)
    assert await claim.take() is not None


async def test_lease_that_is_ours_already_is_kept_and_not_counted(
    claim: Claim, court: Court
) -> None:
    await court.put({**THEIRS, "holderIdentity": "us"})
    assert await claim.take() is not None
    assert court.spec["leaseTransitions"] == 1


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_faster_rival_is_no_error(claim: Claim, court: Court, verb: str) -> None:
    if verb == "update":
        await court.put({})
    taken = status.already_exists(LEASES, KEY.name) if verb == "create" else CONFLICT
    court.server.faults.add(fails(verb, status=taken))
    assert await claim.take() is None


async def test_renewals_do_not_read(
    claim: Claim, court: Court, clock: FakeClock, metrics: Metrics
) -> None:
    await claim.take()
    for _ in range(2):
        clock.seconds += 2
        assert await claim.renew() == clock.seconds
    assert court.requests("ours") == ["create", "get", "update", "update"]
    assert slow_paths(metrics) == 0
    assert court.spec["acquireTime"] == "1970-01-01T00:16:40.000000Z"
    assert court.spec["renewTime"] == "1970-01-01T00:16:44.000000Z"


async def test_renewal_that_meets_a_change_reads_and_goes_on(
    claim: Claim, court: Court, metrics: Metrics
) -> None:
    await claim.take()
    await court.put(court.spec, labels={"team": "a"}, annotations={"note": "b"})
    await claim.renew()
    assert court.requests("ours") == ["create", "get", "get", "update", "update"]
    assert slow_paths(metrics) == 1
    assert court.lease["metadata"]["labels"] == {"team": "a"}
    assert court.lease["metadata"]["annotations"] == {"note": "b"}


async def test_renewal_whose_answer_was_lost_is_found_by_the_next(
    claim: Claim, court: Court
) -> None:
    await claim.take()
    # Twice: over a connection that was used before, the HTTP library sends a PUT again.
    court.server.faults.add(fails("update", reset="after", times=2))
    with pytest.raises(UnreachableError):
        await claim.renew()
    await claim.renew()
    assert court.holder == "us"


async def test_election_whose_answer_was_lost_is_found_by_the_next(
    claim: Claim, court: Court, clock: FakeClock
) -> None:
    await court.put({"leaseTransitions": 6})
    court.server.faults.add(fails("update", reset="after"))
    # The HTTP library has sent it again, and met a lease that had changed: by our own doing.
    assert await claim.take() is None
    assert court.holder == "us"
    clock.seconds += 1
    assert await claim.take() == clock.seconds
    assert court.spec["leaseTransitions"] == 7


@pytest.mark.parametrize("now", ["them", ""])
async def test_lease_that_passed_to_another_is_lost_at_once(
    claim: Claim, court: Court, now: str
) -> None:
    await claim.take()
    await court.put({**THEIRS, "holderIdentity": now})
    with pytest.raises(LeaseLostError, match=now or "nobody"):
        await claim.renew()
    assert court.holder == now


async def test_lease_deleted_under_its_holder_is_created_again(
    claim: Claim, court: Court, clock: FakeClock
) -> None:
    await court.put({"leaseTransitions": 6})
    await claim.take()
    began = court.spec["acquireTime"]
    await court.user.delete(LEASES, KEY)
    clock.seconds += 2
    await claim.renew()
    assert (court.holder, court.spec["leaseTransitions"]) == ("us", 7)
    assert court.spec["acquireTime"] == began


async def test_lease_deleted_and_created_by_another_is_lost(claim: Claim, court: Court) -> None:
    await claim.take()
    await court.user.delete(LEASES, KEY)
    await court.put(THEIRS)
    with pytest.raises(LeaseLostError):
        await claim.renew()


async def test_refusal_is_raised_and_the_next_try_as_good_as_any(
    claim: Claim, court: Court
) -> None:
    await claim.take()
    court.server.faults.add(fails("update", status=status.internal("no"), times=2))
    with pytest.raises(ApiError):
        await claim.renew()
    await claim.renew()


async def test_release_leaves_the_lease_free(claim: Claim, court: Court) -> None:
    await claim.take()
    await claim.release()
    assert court.lease
    assert (court.holder, court.spec["leaseDurationSeconds"]) == ("", 1)


async def test_release_survives_a_conflict(claim: Claim, court: Court) -> None:
    await claim.take()
    court.server.faults.add(fails("update", status=CONFLICT))
    await claim.release()
    assert court.holder == ""


async def test_release_spares_a_lease_that_another_took_in_the_meantime(
    claim: Claim, court: Court
) -> None:
    await claim.take()
    await court.put(THEIRS)
    await claim.release()
    assert court.spec == THEIRS


async def test_release_gives_back_what_was_won_without_our_knowing(
    claim: Claim, court: Court
) -> None:
    court.server.faults.add(fails("create", reset="after"))
    with pytest.raises(UnreachableError):
        await claim.take()
    assert court.holder == "us"
    await claim.release()
    assert court.holder == ""


async def test_one_who_never_claimed_the_lease_releases_nothing(claim: Claim, court: Court) -> None:
    await court.put(THEIRS)
    await claim.take()
    before = court.requests("ours")
    await claim.release()
    assert court.requests("ours") == before


async def test_request_without_an_answer_ends_after_half_the_deadline(
    claim: Claim, court: Court
) -> None:
    claim.timing = Timing(lease_s=0.3, renew_s=0.1, retry_s=0.05)
    court.server.faults.add(fails("get", delay_s=60))
    with pytest.raises(TimeoutError):
        await claim.take()


def test_identity_must_not_be_empty(clock: FakeClock, metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="identity"):
        Claim(None, KEY, "", Timing(), clock, metrics)  # type: ignore[arg-type]
