"""What a scenario is: something to do with an operator, and the figures that result."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, Protocol

import attrs

from bench.cluster.api_server import ApiServer
from bench.cluster.audit import AuditLog
from bench.cluster.operators import Operator, Program
from bench.controller_process import quantile_s

# A list is a series, such as one value a second.
Figures = Mapping[str, float | Sequence[float] | None]
TRAINING_OPERATOR: Final = "training-operator"
MPI_OPERATOR: Final = "mpi-operator"
_SHARE: Final = 0.999


@attrs.frozen
class Bench:
    """The cluster that scenarios run in."""

    server: ApiServer
    folder: Path

    @property
    def audit(self) -> AuditLog:
        return AuditLog(self.folder / "audit.log")


class Scenario(Protocol):
    """A scenario of a given size. Its name and its sizes, in order, are how the user spells it."""

    # The other operator that can do it: how its names begin; empty if only dlctl can.
    peer: ClassVar[str]

    async def measure(self, bench: Bench, program: Program) -> Figures:
        """Start the operator, do it once, and return the figures."""
        ...


def fits(program: Program, scenario: Scenario) -> bool:
    """Return whether an operator can do what a scenario is about."""
    return program.is_dlctl or (scenario.peer != "" and program.name.startswith(scenario.peer))


def ratio(value: float | None, plain_s: float) -> float | None:
    return None if value is None else value / plain_s


def loop_lag(operator: Operator, since: float, until: float) -> Figures:
    """Return how late the event loop woke its sampler, in ms; times are of ``time.monotonic``.

    ``own`` is the part in which the controller itself was busy: the rest waited for a core.
    """
    if operator.controller is None:
        return {}
    late = [one for one in operator.controller.late(since) if one.due < until]
    lasted_s = until - since
    return {
        "lag_p999_ms": 1000 * quantile_s((o.wall_s for o in late), lasted_s, _SHARE),
        "own_lag_p999_ms": 1000 * quantile_s((o.own_s for o in late), lasted_s, _SHARE),
        "longest_stall_ms": 1000 * max((o.wall_s for o in late), default=0.0),
        "longest_own_stall_ms": 1000 * max((o.own_s for o in late), default=0.0),
    }
