"""Random scale requests with faults of servers and launchers, and their expected outcome.

No worker fails by itself, so the outcome follows from the requests alone; it is computed here,
without a controller.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.local.apiserver.faults import Fault
from tests.convergence.cases import Kill, of_requests, of_watches
from tests.support.elastic_harness import JOBS
from tests.support.fake_launcher import ExecFault, FaultType

JOB: Final = "linear"
_INCIDENTS: Final = get_args(FaultType)
_RESOURCES: Final = (
    "pods",
    "services",
    "configmaps",
    JOBS.group_resource,
    JOBS.group_resource,
    SCALE_INS.group_resource,
    SCALE_OUTS.group_resource,
    "",
)


@attrs.frozen
class Request:
    """A ScaleIn or ScaleOut, created this many seconds after the previous one."""

    resource: Resource
    name: str
    spec: JSON
    after_s: float


@attrs.frozen
class Expected:
    """The expected state after all requests."""

    members: Sequence[int]
    phases: Mapping[str, str]
    # The number of pods that each worker name has had.
    made: Mapping[int, int]


@attrs.frozen
class ElasticCase:
    """The events of one run."""

    seed: int
    workers: int
    requests: Sequence[Request]
    expected: Expected
    # Workers that the launcher never reaches.
    unreachable: Sequence[int]
    disconnect_s: float
    faults: Sequence[tuple[float, Fault]]
    incidents: Sequence[ExecFault]
    kills: Sequence[Kill]


@attrs.define
class _Model:
    """The workers after each request in turn."""

    members: list[int]
    made: Counter[int]
    phases: dict[str, str] = attrs.field(factory=dict)
    unreachable: list[int] = attrs.field(factory=list)

    def take(self, name: str, *, chosen: Sequence[int] | None) -> None:
        ok = chosen is not None and 0 < len(chosen) < len(self.members)
        self.phases[name] = "ScaleSucceeded" if ok else "ScaleFailed"
        if ok and chosen:
            self.members = [i for i in self.members if i not in chosen]

    def add(self, name: str, count: int, *, most: int, mute: int = 0, enough: int = 0) -> None:
        coming = range(max(self.members) + 1, max(self.members) + 1 + count)
        if len(self.members) + count > most:
            self.phases[name] = "ScaleFailed"
            return
        self.made.update(coming)
        self.unreachable = list(coming)[count - mute :]
        answering = [i for i in coming if i not in self.unreachable]
        ok = not mute or (answering and len(answering) >= enough)
        self.phases[name] = "ScaleSucceeded" if ok else "ScaleFailed"
        self.members += answering if ok else []


def elastic_case(seed: int) -> ElasticCase:
    dice = random.Random(seed)
    workers = dice.randint(1, 3)
    model = _Model(list(range(workers)), Counter(range(workers)))
    count = dice.randint(2, 4)
    requests = [_request(dice, model, f"s{number}") for number in range(count)]
    if dice.random() < 0.4 and max(model.made) == max(model.members):
        # Unused names, so that no other worker is unreachable.
        requests.append(_make_unreachable(dice, model))
    return ElasticCase(
        seed,
        workers,
        requests,
        Expected(tuple(model.members), dict(model.phases), dict(model.made)),
        tuple(model.unreachable),
        dice.choice((0.0, 0.0, 2.0)),
        sorted(faults_of(dice), key=lambda timed: timed[0]),
        list(incidents_of(dice)),
        [
            Kill(dice.randint(0, 30), dice.randint(0, 30), dice.choice((0.0, dice.uniform(0, 3))))
            for _ in range(dice.randint(0, 4))
        ],
    )


def _request(dice: random.Random, model: _Model, name: str) -> Request:
    # Requests created in the same second have no defined order.
    after_s = dice.choice((1.1, 1.1, 5.0))
    match dice.choice(("out", "out", "in", "names", "unknown")):
        case "out":
            added = dice.randint(1, 3)
            model.add(name, added, most=6)
            return Request(SCALE_OUTS, name, {"toAdd": {"count": added}}, after_s)
        case "in":
            count = dice.randint(1, 2)
            fits = count < len(model.members)
            model.take(name, chosen=model.members[-count:] if fits else None)
            return Request(SCALE_INS, name, {"toDelete": {"count": count}}, after_s)
        case "names":
            some = min(len(model.members), 2)
            chosen = sorted(dice.sample(model.members, dice.randint(1, some)))
            model.take(name, chosen=chosen)
        case _:
            chosen = [model.members[0], 99]
            model.take(name, chosen=None)
    names = [f"{JOB}-worker-{index}" for index in chosen]
    return Request(SCALE_INS, name, {"toDelete": {"podNames": names}}, after_s)


def _make_unreachable(dice: random.Random, model: _Model) -> Request:
    """Return a ScaleOut of two workers, one of which is never reachable."""
    enough = dice.choice((1, 2))
    model.add("last", 2, most=6, mute=1, enough=enough)
    to_add = {"count": 2, "minCount": enough}
    return Request(SCALE_OUTS, "last", {"toAdd": to_add, "timeout": 90}, 1.1)


def faults_of(dice: random.Random) -> Iterator[tuple[float, Fault]]:
    """Yield faults of the server, with the seconds from the start at which they are armed."""
    for _ in range(dice.randint(0, 20)):
        verb = dice.choice(("get", "create", "patch", "patch", "delete", "watch"))
        where: JSON = {"user_agent": "dlctl", "resource": dice.choice(_RESOURCES)}
        where |= {"verb": verb, "times": dice.randint(1, 3)}
        kinds = of_watches(dice) if verb == "watch" else of_requests(dice)
        yield dice.uniform(0, 15), Fault(**where, **dice.choice(list(kinds)))


def incidents_of(dice: random.Random) -> Iterator[ExecFault]:
    """Yield faults of the launcher."""
    for _ in range(dice.randint(0, 6)):
        order = dice.choice(("deliver", "probe", "users", ""))
        yield ExecFault(dice.choice(_INCIDENTS), order, after=dice.random() < 0.5)
