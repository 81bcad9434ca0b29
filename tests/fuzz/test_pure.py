"""Objects of all kinds through all that is pure: refused or planned, in little time and memory."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.fuzz.budget import (
    BUDGET_S,
    EACH_MEASURED,
    LARGE_BYTES,
    LARGE_MEMORY_BYTES,
    LARGE_TIME_S,
    MEMORY_BYTES,
    OBJECTS,
    SEED,
    TIME_S,
    Tried,
)
from tests.fuzz.objects import Form, forms, objects
from tests.fuzz.pipeline import LARGE, is_listed, through

JSON = dict[str, Any]
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(BUDGET_S + 600)]

FORMS: Final = list(forms())
_SHOWN: Final = 4000


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_whatever_is_stored_costs_itself_alone(
    form: Form, record_property: Callable[[str, object], None]
) -> None:
    tried = Tried(BUDGET_S / len(FORMS))

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
        if tried.over and not tried.failed:
            return
        wire = msgspec.json.encode(body)
        note(f"FUZZ_SEED={SEED:#x}, {len(wire)} bytes: {wire[:_SHOWN].decode()}")
        try:
            outcome = _tried(form, wire, tried)
        except BaseException:
            tried.failed = True
            raise
        tried.outcomes[outcome] += 1

    try:
        try_each()
    finally:
        record_property("fuzz", f"{form}: {tried}")
    assert tried.outcomes.total(), "the budget is over before it has begun"


def _tried(form: Form, wire: bytes, tried: Tried) -> str:
    """Take an object through, and return its outcome if that has kept to the bounds."""
    # A list is read in a thread where that takes long, so it has no part in the time.
    listed = is_listed(form, wire)
    taken_s, outcome = _timed(form, wire)
    assert listed is (outcome != "malformed")
    large = outcome == LARGE
    most_s, most_bytes = (LARGE_TIME_S, LARGE_MEMORY_BYTES) if large else (TIME_S, MEMORY_BYTES)
    if taken_s > most_s:
        # Once more, without collecting the garbage of all others.
        gc.collect()
        taken_s = min(taken_s, _timed(form, wire)[0], _timed(form, wire)[0])
    assert taken_s <= most_s, f"{taken_s * 1000:.0f} ms of {most_s * 1000:.0f}"
    peak = 0
    if tried.outcomes.total() % EACH_MEASURED == 0 or len(wire) > LARGE_BYTES:
        peak = _peak_bytes(form, wire)
        assert peak <= most_bytes, f"{peak / 1e6:.1f} MB of {most_bytes / 1e6:.1f}"
    if not large:
        tried.slowest_s = max(tried.slowest_s, taken_s)
        tried.largest_bytes = max(tried.largest_bytes, peak)
    return outcome


def _timed(form: Form, wire: bytes) -> tuple[float, str]:
    started = time.thread_time()
    outcome = through(form, wire)
    return time.thread_time() - started, outcome


def _peak_bytes(form: Form, wire: bytes) -> int:
    tracemalloc.start()
    try:
        through(form, wire)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
