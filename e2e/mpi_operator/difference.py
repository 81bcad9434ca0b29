"""What two records of the same cases do not have in common, and which of it is meant."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

MISSING: Final = "(nothing)"


@attrs.frozen
class Difference:
    """A place in a record, and what each operator has there."""

    path: str
    theirs: str
    ours: str


@attrs.frozen
class Meant:
    """A difference that is meant: where, in which cases, what ("theirs > ours"), and why."""

    why: str
    path: str
    cases: str = ".*"
    what: str = ""

    def covers(self, difference: Difference, case: str) -> bool:
        return bool(
            re.fullmatch(self.cases, case)
            and re.search(self.path, difference.path)
            and re.search(self.what, f"{difference.theirs} > {difference.ours}")
        )


# By difference, where it is: the case and the step.
Found = Mapping[Difference, Sequence[tuple[str, str]]]


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Found:
    """Return what differs, and in which cases and steps."""
    found: dict[Difference, list[tuple[str, str]]] = defaultdict(list)
    for case in theirs:
        for step in dict.fromkeys((*theirs[case], *ours[case])):
            left, right = (_of_job(one[case].get(step, MISSING), case) for one in (theirs, ours))
            for difference in _compared(left, right, ""):
                found[difference].append((case, step))
    return found


def not_meant(found: Found, meant: Iterable[Meant]) -> Found:
    """Return the differences without those that are meant."""
    meant = list(meant)
    left = {
        difference: [
            (case, step)
            for case, step in places
            if not any(one.covers(difference, case) for one in meant)
        ]
        for difference, places in found.items()
    }
    return {difference: places for difference, places in left.items() if places}


def _compared(theirs: Any, ours: Any, path: str) -> Iterator[Difference]:
    match theirs, ours:
        case dict(), dict():
            for key in dict.fromkeys((*theirs, *ours)):
                left, right = theirs.get(key, MISSING), ours.get(key, MISSING)
                yield from _compared(left, right, f"{path}/{key}".lstrip("/"))
        case list(), list() if path == "events":
            for event in dict.fromkeys((*theirs, *ours)):
                left, right = (event if event in one else MISSING for one in (theirs, ours))
                yield from _compared(left, right, path)
        case list(), list():
            yield from _compared_lists(theirs, ours, path)
        case _ if theirs != ours:
            yield Difference(path, _shown(theirs), _shown(ours))


def _compared_lists(theirs: list[Any], ours: list[Any], path: str) -> Iterator[Difference]:
    key = "type" if path.endswith("/conditions") else "name"
    left, right = _names(theirs, key), _names(ours, key)
    if left is None or right is None:
        if len(theirs) != len(ours):
            yield Difference(path, _shown(theirs), _shown(ours))
            return
        left = right = [str(index) for index in range(len(ours))]
    if left != right:
        yield Difference(f"{path} order", " ".join(left), " ".join(right))
    sides = dict(zip(left, theirs, strict=True)), dict(zip(right, ours, strict=True))
    yield from _compared(*sides, path)


def _names(values: list[Any], key: str) -> list[str] | None:
    """Return the names of a list's items, if all have one of their own."""
    names = [str(one[key]) for one in values if isinstance(one, dict) and key in one]
    return names if len(set(names)) == len(values) else None


def _shown(value: Any) -> str:
    return "there" if isinstance(value, dict) and "kind" in value else str(value)


def _of_job(value: Any, name: str) -> Any:
    """Return a value in whose texts the job is called JOB."""
    match value:
        case dict():
            return {key: _of_job(one, name) for key, one in value.items()}
        case list():
            return [_of_job(one, name) for one in value]
        case str():
            return re.sub(rf"\b{re.escape(name)}\b", "JOB", value)
        case _:
            return value
