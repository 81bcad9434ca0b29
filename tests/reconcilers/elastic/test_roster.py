"""Which indexes new workers get."""

import pytest

from dlctl.api.elastic import Roster
from dlctl.reconcilers.elastic.roster import fresh


@pytest.mark.parametrize(
    ("roster", "count", "indexes"),
    [
        pytest.param(Roster(), 2, (0, 1), id="first"),
        pytest.param(Roster(members=(0, 2)), 2, (3, 4), id="next"),
        pytest.param(Roster(members=(0, 1), spent=frozenset({2, 4})), 2, (3, 5), id="not spent"),
        pytest.param(Roster(members=(0, 98)), 3, (99, 1, 2), id="lowest free after the last"),
        pytest.param(
            Roster(members=(0, 99), spent=frozenset(range(1, 98))), 2, (98,), id="no more"
        ),
    ],
)
def test_indexes_stay_within_what_names_allow(
    roster: Roster, count: int, indexes: tuple[int, ...]
) -> None:
    assert fresh(roster, count, 99) == indexes
