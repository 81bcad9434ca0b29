"""What one object costs, measured so that neither other objects nor other processes have a part.

Time is the processor's, of this thread. Both are taken without the garbage collector: whether it
runs, and over how much, depends on what was there before.
"""

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import msgspec

from tests.fuzz.limits import LARGE_MAX_TIME_S, MAX_TIME_S, max_memory_bytes
from tests.fuzz.objects import CrdVersion
from tests.fuzz.pipeline import is_large, is_listed, run_pipeline
from tests.support.cost_growth import no_garbage_collection

# Another process takes its share of caches and cores: the quickest run is the least disturbed.
_REPEATS: Final = 8
_REFERENCE: Final = msgspec.json.encode([{str(n): n for n in range(20)}] * 500)
# On a core of an AMD EPYC beside a busy one.
_USUAL_REFERENCE_S: Final = 0.0025


@attrs.frozen
class Cost:
    """The outcome of an object, and what it took; no bytes if they were not measured."""

    outcome: str
    time_s: float
    peak_bytes: int = 0


def run_within_limits(
    form: CrdVersion, wire: bytes, *, measure_memory: bool, time_factor: float = 1.0
) -> Cost:
    """Take an object through, and return its cost if that is within the bounds.

    ``time_factor`` is for machines that other work keeps busy: it widens the bound of the time.
    """
    # A list is read in a thread where that takes long, so it has no part in the time.
    listed = is_listed(form, wire)
    taken_s, outcome = _timed(form, wire)
    assert listed is (outcome != "malformed")
    most_s = time_factor * (LARGE_MAX_TIME_S if is_large(outcome) else MAX_TIME_S)
    for _ in range(_REPEATS):
        if taken_s > most_s:
            taken_s = min(taken_s, _timed(form, wire)[0])
    if taken_s > most_s:
        most_s *= _slowness()
    assert taken_s <= most_s, f"{taken_s * 1000:.0f} ms of {most_s * 1000:.0f}"
    if not measure_memory:
        return Cost(outcome, taken_s)
    peak, decoded = _peak_bytes(form, wire), _decoded_bytes(wire)
    most = max_memory_bytes(len(wire), decoded, large=is_large(outcome))
    assert peak <= most, f"{peak / 1e6:.1f} MB of {most / 1e6:.1f}, {decoded / 1e6:.1f} decoded"
    return Cost(outcome, taken_s, peak)


def _slowness() -> float:
    """Return how much longer than usual ordinary work takes here and now; 1 at least."""
    with no_garbage_collection():
        return max(1.0, min(_reference_s() for _ in range(_REPEATS)) / _USUAL_REFERENCE_S)


def _reference_s() -> float:
    """Return the time of what reading objects consists of: decoding, copying, short texts."""
    started = time.thread_time()
    items = msgspec.json.decode(_REFERENCE)
    copies = [{key: value for key, value in item.items() if value is not None} for item in items]
    texts = {f"spec.containers[{i}].env[{key}]" for i, copy in enumerate(copies) for key in copy}
    assert len(texts) == len(copies) * len(copies[0])
    return time.thread_time() - started


def _timed(form: CrdVersion, wire: bytes) -> tuple[float, str]:
    with no_garbage_collection():
        started = time.thread_time()
        outcome = run_pipeline(form, wire)
        return time.thread_time() - started, outcome


def _peak_bytes(form: CrdVersion, wire: bytes) -> int:
    """Return the memory that an object takes at most, all caches having been filled before."""
    with no_garbage_collection(), _traced_memory():
        run_pipeline(form, wire)
        return tracemalloc.get_traced_memory()[1]


def _decoded_bytes(wire: bytes) -> int:
    """Return the memory of an object's decoded JSON; 0 if it nests too deep to be decoded."""
    with no_garbage_collection(), _traced_memory():
        try:
            msgspec.json.decode(wire)
        except (RecursionError, msgspec.DecodeError):
            return 0
        return tracemalloc.get_traced_memory()[1]


@contextmanager
def _traced_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
