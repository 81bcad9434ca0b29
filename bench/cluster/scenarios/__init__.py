"""The scenarios, by the names that the user gives them."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from bench.cluster.scenario import Scenario
from bench.cluster.scenarios.creation import Creation, OneService
from bench.cluster.scenarios.fairness import Fairness
from bench.cluster.scenarios.first_write import FirstWrite
from bench.cluster.scenarios.floor import Floor
from bench.cluster.scenarios.foreign_pods import ForeignPods
from bench.cluster.scenarios.job_restart import GangRestart, JobRestart
from bench.cluster.scenarios.live_jobs import LiveJobs
from bench.cluster.scenarios.mpi_jobs import MPIJobs
from bench.cluster.scenarios.overload import Overload
from bench.cluster.scenarios.restart import Restart
from bench.cluster.scenarios.sustained import Sustained, SustainedTTL

_CREATION: Final = "create"
_BY_NAME: Final[Mapping[str, type[Any]]] = {
    _CREATION: Creation,
    "fairness": Fairness,
    "first-write": FirstWrite,
    "floor": Floor,
    "foreign": ForeignPods,
    "gang-restart": GangRestart,
    "job-restart": JobRestart,
    "live": LiveJobs,
    "mpi": MPIJobs,
    "one-service": OneService,
    "overload": Overload,
    "restart": Restart,
    "sustained": Sustained,
    "sustained-ttl": SustainedTTL,
}


def parse_scenario(text: str) -> tuple[str, Scenario]:
    """Return the full spelling of ``NAME:SIZExSIZE`` or ``JOBSxREPLICAS``, and the scenario.

    :raises ValueError: if it is none.
    """
    name, colon, sizes = text.partition(":")
    if not colon and name not in _BY_NAME:
        name, sizes = _CREATION, text
    if name not in _BY_NAME:
        raise ValueError(f"{name} is none of {', '.join(_BY_NAME)}")
    numbers = [int(size) for size in sizes.split("x")] if sizes else []
    scenario = _BY_NAME[name](*numbers)
    spelling = "x".join(str(size) for size in attrs.astuple(scenario))
    full = spelling if name == _CREATION else f"{name}:{spelling}".removesuffix(":")
    return full, scenario
