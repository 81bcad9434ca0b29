"""Stored hostile objects of all kinds must not affect another user's job."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import msgspec
import pytest

from dlctl.api.json_types import JSON
from tests.fuzz.bystander import MAX_WRITES_EACH, BystanderReport, run_bystander
from tests.fuzz.limits import BUDGET_S, SEED, STORED
from tests.fuzz.objects import CrdVersion, crd_versions, objects
from tests.fuzz.sampling import draw_values, find_failing, shrink

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(BUDGET_S + 600)]

FORMS: Final = list(crd_versions())
OF_EACH: Final = -(-STORED // len(FORMS))
# Objects drawn for each stored one: the schemas reject most.
_CANDIDATES_EACH: Final = 12


def test_hostile_jobs_do_not_affect_another_job(
    record_property: Callable[[str, object], None],
) -> None:
    each = [
        [
            (form, body)
            for body in draw_values(objects(form, status=False), OF_EACH * _CANDIDATES_EACH, SEED)
        ]
        for form in FORMS
    ]
    tried = [one for turn in zip(*each, strict=False) for one in turn]
    problem, left = _problem(tried)
    if left is not None:
        stored = left.stored.total()
        record_property("fuzz", f"{stored} objects stored; writes at rest: {left.writes.total()}")
    if problem:
        pytest.fail(f"{problem}\nFUZZ_SEED={SEED}; {_smallest_failing(tried)}")
    assert left is not None
    assert left.stored.total() >= STORED * 2 // 3, f"the server takes too few: {left.stored}"
    # The others would make up for a form that is never stored.
    missing = [str(form) for form in FORMS if not left.stored[str(form)]]
    assert not missing, f"the server takes none of {missing}: {left.stored}"


def _problem(tried: Sequence[tuple[CrdVersion, JSON]]) -> tuple[str, BystanderReport | None]:
    """Return what goes wrong with these objects, if anything."""
    try:
        left = run_bystander(tried, of_each=OF_EACH)
    except Exception as error:  # noqa: BLE001 - whatever ends the controller is a finding.
        return f"the controller, or the server, ended: {error!r}", None
    alone = _undisturbed()
    if (left.changes, left.conditions) != (alone.changes, alone.conditions):
        return f"the bystander: {left.changes} {left.conditions}, alone: {alone}", left
    if left.events.keys() != alone.events.keys():
        return f"the bystander's events: {left.events}, alone: {alone.events}", left
    most = max(1, left.stored.total()) * MAX_WRITES_EACH
    if left.writes.total() > most:
        return f"it never rests: {left.writes}, more than {most:.0f}", left
    if left.undecodable:
        return f"typed clients cannot list what is stored: {left.undecodable}", left
    return "", left


@cache
def _undisturbed() -> BystanderReport:
    return run_bystander([], of_each=0)


def _smallest_failing(tried: Sequence[tuple[CrdVersion, JSON]]) -> str:
    """Return the minimal manifest of one object that fails alone."""
    one = find_failing(tried, lambda some: bool(_problem(some)[0]))
    if one is None:
        return "no object does it alone"
    form, body = one
    small = shrink(body, lambda smaller: bool(_problem([(form, smaller)])[0]))
    return f"this does it alone: {msgspec.json.encode(small).decode()[:4000]}"
