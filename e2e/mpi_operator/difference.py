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
    """A difference that is meant: where, in which cases, and why."""

    why: str
    path: str
    cases: str = ".*"

    def covers(self, difference: Difference, case: str) -> bool:
        return bool(re.fullmatch(self.cases, case) and re.search(self.path, difference.path))


# By difference, where it is: the case and the step.
Found = Mapping[Difference, Sequence[tuple[str, str]]]


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Found:
    """Return what differs, and in which cases and steps."""
    found: dict[Difference, list[tuple[str, str]]] = defaultdict(list)
    for case in theirs:
        for step in dict.fromkeys((*theirs[case], *ours[case])):
            both = [_leaves(record[case].get(step, {}), case) for record in (theirs, ours)]
            for difference in _compared(*both):
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


def _compared(theirs: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Difference]:
    for path in dict.fromkeys((*theirs, *ours)):
        left, right = theirs.get(path, MISSING), ours.get(path, MISSING)
        if left != right:
            yield Difference(path, left, right)


def _leaves(record: Any, case: str) -> dict[str, str]:
    name = re.compile(rf"\b{re.escape(case)}\b")
    return {path: name.sub("JOB", value) for path, value in _flat(record, "")}


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict() if value:
            if "kind" in value and path.startswith("objects/") and path.count("/") == 1:
                yield path, "there"
            for key, one in value.items():
                yield from _flat(one, f"{path}/{key}".lstrip("/"))
        case list() if value and path == "events":
            yield from ((f"event {event}", "there") for event in value)
        case list() if value:
            yield from _flat_list(value, path)
        case _:
            yield path, repr(value)


def _flat_list(values: Sequence[Any], path: str) -> Iterator[tuple[str, str]]:
    key = "type" if path.endswith("/conditions") else "name"
    if all(isinstance(value, dict) and key in value for value in values):
        names = [str(value[key]) for value in values]
        yield f"{path} order", " ".join(names)
        distinct = len(set(names)) == len(names)
    else:
        names, distinct = [], False
    for number, value in enumerate(values):
        yield from _flat(value, f"{path}/{names[number] if distinct else number}")
