"""Which workers are added and removed, and which indexes new ones get."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.api.policies.elasticity import Elasticity
from dlctl.api.status.membership import Membership
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.reconcilers.membership.selection import (
    ScaleRejectedError,
    choose_added,
    choose_last,
    choose_removed,
    follow_replicas,
    free_indexes,
)
from tests.dialects.et_operator.manifests import read_job
from tests.reconcilers.membership.builders import LISTED, make_state, removing, scaler_in


@pytest.mark.parametrize(
    ("membership", "count", "indexes"),
    [
        pytest.param(Membership(), 2, (0, 1), id="first"),
        pytest.param(Membership(members=(0, 2)), 2, (3, 4), id="next"),
        pytest.param(
            Membership(members=(0, 1), retired=frozenset({2, 4})), 2, (3, 5), id="not retired"
        ),
        pytest.param(Membership(members=(0, 98)), 3, (99, 1, 2), id="lowest free after the last"),
        pytest.param(
            Membership(members=(0, 99), retired=frozenset(range(1, 98))), 2, (98,), id="no more"
        ),
    ],
)
def test_indexes_stay_within_the_limit_of_names(
    membership: Membership, count: int, indexes: tuple[int, ...]
) -> None:
    assert free_indexes(membership, count, 99) == indexes


def test_workers_whose_names_would_be_too_long_are_not_added() -> None:
    state = make_state(job=read_job(name="n" * (MAX_LENGTH - len("-worker-999"))))
    assert choose_added(state, 998) == tuple(range(2, 1000))
    with pytest.raises(ScaleRejectedError, match="names of 999 more workers would be too long"):
        choose_added(state, 999)


@pytest.mark.parametrize(
    ("membership", "count", "followed"),
    [
        pytest.param(LISTED, 2, LISTED, id="unchanged"),
        pytest.param(LISTED, 3, LISTED.add([2]), id="more"),
        pytest.param(LISTED, 1, attrs.evolve(LISTED, members=(0,)), id="fewer"),
        pytest.param(
            LISTED.retire([0]), 3, attrs.evolve(LISTED, members=(1, 2, 3)), id="without the retired"
        ),
    ],
)
def test_members_follow_the_replica_count(
    membership: Membership, count: int, followed: Membership
) -> None:
    expected = attrs.evolve(followed, retired=membership.retired, observed_replicas=count)
    assert follow_replicas(membership, count, 99) == expected


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param(LISTED.with_evacuating(removing(0)), id="evacuated"),
        pytest.param(LISTED.with_scaling(removing(0)), id="removed by a ScaleIn"),
    ],
)
def test_job_without_a_launcher_does_not_keep_a_worker_that_leaves(leaving: Membership) -> None:
    assert leaving.members == (0, 1)
    assert follow_replicas(leaving, 1, 99).members == (1,)
    assert follow_replicas(leaving, 3, 99).members == (1, 2, 3)


@pytest.mark.parametrize(
    ("count", "removed"),
    [
        pytest.param(1, (2,), id="one that was never listed"),
        pytest.param(2, (1, 2), id="then the last"),
    ],
)
def test_unlisted_workers_are_removed_first_then_the_last(
    count: int, removed: tuple[int, ...]
) -> None:
    state = make_state(Membership((0, 1, 2, 3), (0, 1, 3), retired=frozenset({3})))
    assert choose_last(state, count) == removed


def test_scale_out_within_the_maximum_takes_the_next_indexes() -> None:
    state = make_state(elasticity=Elasticity(max_replicas=4))
    assert choose_added(state, 2) == (2, 3)
    with pytest.raises(ScaleRejectedError, match="would make 5 workers, but maxReplicas"):
        choose_added(state, 3)


def test_rejection_counts_one_worker_in_the_singular() -> None:
    state = make_state(elasticity=Elasticity(min_replicas=2))
    with pytest.raises(ScaleRejectedError, match=r"^1 worker would be left, but minReplicas"):
        choose_removed(state, scaler_in(toDelete={"count": 1}))


def test_scale_out_beyond_what_any_job_may_have_is_rejected() -> None:
    state = make_state(elasticity=Elasticity())
    with pytest.raises(ScaleRejectedError, match="would make 10001 workers, but a job may have"):
        choose_added(state, 9_999)


@pytest.mark.parametrize(
    ("spec", "removed"),
    [
        pytest.param({"count": 1}, (1,), id="number"),
        pytest.param({"podNames": ["linear-worker-0"]}, (0,), id="name"),
        pytest.param({"podNames": ["linear-worker-0", "linear-worker-0"]}, (0,), id="name twice"),
    ],
)
def test_scale_in_removes_the_last_or_the_named_workers(
    spec: JSON, removed: tuple[int, ...]
) -> None:
    assert choose_removed(make_state(), scaler_in(toDelete=spec)) == removed


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"count": 2}, "should be less than current replicas 2", id="all"),
        pytest.param({"podNames": ["other"]}, "has other, but the workers", id="unknown name"),
        pytest.param(
            {"podNames": ["linear-worker-0", "linear-worker-1"]},
            "0 workers would be left",
            id="min",
        ),
    ],
)
def test_impossible_scale_in_is_rejected(spec: JSON, reason: str) -> None:
    with pytest.raises(ScaleRejectedError, match=reason):
        choose_removed(make_state(), scaler_in(toDelete=spec))


@given(st.frozensets(st.integers(0, 12)), st.frozensets(st.integers(0, 12)), st.integers(0, 8))
def test_new_indexes_are_free_and_distinct(
    members: frozenset[int], retired: frozenset[int], count: int
) -> None:
    membership = Membership().add(members).retire(retired)
    found = free_indexes(membership, count, 12)
    free = set(range(13)) - members - retired
    assert len(found) == len(set(found)) == min(count, len(free))
    assert set(found) <= free


def test_message_about_unknown_names_is_short_for_any_request() -> None:
    membership = attrs.evolve(LISTED, members=tuple(range(200)))
    names = [f"other-{number}" for number in range(1000)] + ["x" * 30_000]
    request = scaler_in(toDelete={"podNames": names[::-1]})
    with pytest.raises(ScaleRejectedError, match=r"991 more, but .* 190 more") as error:
        choose_removed(make_state(membership), request)
    assert len(str(error.value)) < 1024
