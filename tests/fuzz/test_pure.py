"""Objects of all kinds through all that is pure: refused or planned, in little time and memory."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.fuzz.limits import (
    ALWAYS_MEASURED_BYTES,
    BUDGET_S,
    LARGE_MAX_MEMORY_BYTES,
    LARGE_MAX_TIME_S,
    MAX_MEMORY_BYTES,
    MAX_TIME_S,
    MEASURE_EVERY,
    OBJECTS,
    SEED,
    FuzzReport,
)
from tests.fuzz.objects import CrdVersion, crd_versions, objects
from tests.fuzz.pipeline import LARGE, is_listed, run_pipeline

JSON = dict[str, Any]
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(BUDGET_S + 600)]

FORMS: Final = list(crd_versions())
_SHOWN: Final = 4000


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_whatever_is_stored_costs_itself_alone(
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
        # What has failed is tried again while it shrinks, whatever the time.
        if tried.is_over_budget and not tried.failed:
            return
        wire = msgspec.json.encode(body)
        note(f"FUZZ_SEED={SEED:#x}, {len(wire)} bytes: {wire[:_SHOWN].decode()}")
        try:
            outcome = _run_within_limits(form, wire, tried)
        except BaseException:
            tried.failed = True
            raise
        tried.outcomes[outcome] += 1

    try:
        try_each()
    finally:
        record_property("fuzz", f"{form}: {tried}")
    assert tried.outcomes.total(), "the budget is over before it has begun"


def _run_within_limits(form: CrdVersion, wire: bytes, tried: FuzzReport) -> str:
    """Take an object through, and return its outcome if that has kept to the bounds."""
    # A list is read in a thread where that takes long, so it has no part in the time.
    listed = is_listed(form, wire)
    taken_s, outcome = _timed(form, wire)
    assert listed is (outcome != "malformed")
    large = outcome == LARGE
    most_s, most_bytes = (
        (LARGE_MAX_TIME_S, LARGE_MAX_MEMORY_BYTES) if large else (MAX_TIME_S, MAX_MEMORY_BYTES)
    )
    if taken_s > most_s:
        # Once more, without collecting the garbage of all others.
        gc.collect()
        taken_s = min(taken_s, _timed(form, wire)[0], _timed(form, wire)[0])
    assert taken_s <= most_s, f"{taken_s * 1000:.0f} ms of {most_s * 1000:.0f}"
    peak = 0
    if tried.outcomes.total() % MEASURE_EVERY == 0 or len(wire) > ALWAYS_MEASURED_BYTES:
        peak = _peak_bytes(form, wire)
        assert peak <= most_bytes, f"{peak / 1e6:.1f} MB of {most_bytes / 1e6:.1f}"
    if not large:
        tried.slowest_s = max(tried.slowest_s, taken_s)
        tried.largest_bytes = max(tried.largest_bytes, peak)
    return outcome


def _timed(form: CrdVersion, wire: bytes) -> tuple[float, str]:
    started = time.thread_time()
    outcome = run_pipeline(form, wire)
    return time.thread_time() - started, outcome


def _peak_bytes(form: CrdVersion, wire: bytes) -> int:
    tracemalloc.start()
    try:
        run_pipeline(form, wire)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
