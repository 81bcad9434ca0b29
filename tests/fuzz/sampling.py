"""Objects drawn in bulk from a seed, and the smallest one that meets a condition."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from dlctl.api.json_types import JSON

T = TypeVar("T")


def draw_values(strategy: SearchStrategy[T], count: int, seed_: int) -> list[T]:
    """Return as many values of a strategy, in the order in which they are drawn."""
    found: list[T] = []

    @seed(seed_)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found


def find_failing(objects: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> T | None:
    """Return one object that fails alone; None if only several together do."""
    while len(objects) > 1:
        middle = len(objects) // 2
        halves = (objects[:middle], objects[middle:])
        failing = next((half for half in halves if fails(half)), None)
        if failing is None:
            return None
        objects = failing
    return objects[0] if objects else None


def shrink(body: JSON, fails: Callable[[JSON], bool], *, tries: int = 60) -> JSON:
    """Return a minimal object that still fails."""
    smallest = body
    place = 0
    for _ in range(tries):
        smaller = copy.deepcopy(smallest)
        places = list(_removable_items(smaller["spec"]))
        if place >= len(places):
            break
        holder, key = places[place]
        del holder[key]
        if fails(smaller):
            smallest = smaller
        else:
            place += 1
    return smallest


def _removable_items(value: Any) -> list[tuple[Any, Any]]:
    """Return all removable values, the outermost first."""
    match value:
        case dict():
            found: list[tuple[Any, Any]] = [(value, key) for key in value]
        case list():
            found = [(value, index) for index in range(len(value))]
        case _:
            return []
    return found + [part for holder, key in found for part in _removable_items(holder[key])]
