"""Which indexes new workers get."""

import pytest

from dlctl.api.elastic import Membership
from dlctl.reconcilers.membership.selection import free_indexes


@pytest.mark.parametrize(
    ("membership", "count", "indexes"),
    [
        pytest.param(Membership(), 2, (0, 1), id="first"),
        pytest.param(Membership(members=(0, 2)), 2, (3, 4), id="next"),
        pytest.param(
            Membership(members=(0, 1), retired=frozenset({2, 4})), 2, (3, 5), id="not spent"
        ),
        pytest.param(Membership(members=(0, 98)), 3, (99, 1, 2), id="lowest free after the last"),
        pytest.param(
            Membership(members=(0, 99), retired=frozenset(range(1, 98))), 2, (98,), id="no more"
        ),
    ],
)
def test_indexes_stay_within_what_names_allow(
    membership: Membership, count: int, indexes: tuple[int, ...]
) -> None:
    assert free_indexes(membership, count, 99) == indexes
