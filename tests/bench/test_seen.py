"""Objects that a watch has shown."""

import time
from typing import Any

from bench.cluster.seen import Seen, has_condition


def _object(uid: str, *running: str) -> dict[str, Any]:
    conditions = [{"type": "Running", "status": status} for status in running]
    return {"metadata": {"uid": uid}, "status": {"conditions": conditions}}


async def test_time_is_that_of_the_object_that_completes_the_number() -> None:
    start = time.perf_counter()
    seen = Seen()
    seen.add(_object("1"))
    seen.add(_object("1"))
    seen.add(_object("2"))
    taken_s = await seen.complete_s(2, start)
    assert len(seen) == 2
    assert taken_s is not None
    assert 0 <= taken_s < time.perf_counter() - start


async def test_number_that_is_not_reached_within_the_limit_is_unknown() -> None:
    assert await Seen().complete_s(1, time.perf_counter() - 10_000) is None


def test_object_counts_once_it_meets_the_condition() -> None:
    seen = Seen(has_condition("Running"))
    seen.add({"metadata": {"uid": "1"}})
    seen.add(_object("1", "False"))
    assert len(seen) == 0
    seen.add(_object("1", "True"))
    assert len(seen) == 1
