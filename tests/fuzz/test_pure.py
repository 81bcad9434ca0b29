"""Objects of all kinds through all pure code: rejected or planned within time and memory."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from dlctl.api.json_types import JSON
from tests.fuzz.costs import run_within_limits
from tests.fuzz.fuzz_report import FuzzReport
from tests.fuzz.limits import ALWAYS_MEASURED_BYTES, BUDGET_S, MEASURE_EVERY, OBJECTS, SEED
from tests.fuzz.objects import CrdVersion, crd_versions, objects
from tests.fuzz.pipeline import is_large

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(BUDGET_S + 600)]

FORMS: Final = list(crd_versions())
_SHOWN: Final = 4000
# Of a failing object, beside the time of its form.
_SHRINK_S: Final = 30.0


class _OutOfBudgetError(BaseException):
    """Ends drawing; Hypothesis takes an Exception for a finding, and goes on after a return."""


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_any_stored_object_affects_only_itself(
    form: CrdVersion, record_property: Callable[[str, object], None]
) -> None:
    tried = FuzzReport(BUDGET_S / len(FORMS))

    @seed(SEED)
    @settings(
        max_examples=OBJECTS // len(FORMS),
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(objects(form))
    def try_each(body: JSON) -> None:
        wire = msgspec.json.encode(body)
        if tried.is_over_budget and wire not in tried.failed:
            if tried.failed:
                # Nothing smaller is found any more, and what has failed is shown.
                return
            raise _OutOfBudgetError
        note(f"FUZZ_SEED={SEED:#x}, {len(wire)} bytes: {wire[:_SHOWN].decode()}")
        measured = tried.outcomes.total() % MEASURE_EVERY == 0 or len(wire) > ALWAYS_MEASURED_BYTES
        try:
            # An input that has used too much memory fails again only if memory is measured.
            cost = run_within_limits(form, wire, measure_memory=measured or bool(tried.failed))
        except Exception:
            if not tried.failed:
                tried.budget_s += _SHRINK_S
            tried.failed.add(wire)
            raise
        tried.add(cost, in_loop=not is_large(cost.outcome))

    try:
        with suppress(_OutOfBudgetError):
            try_each()
    finally:
        record_property("fuzz", f"{form}: {tried}")
    assert tried.outcomes.total(), "the budget is over before it has begun"
