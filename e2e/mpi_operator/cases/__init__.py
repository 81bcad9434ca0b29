"""The jobs that are compared, by what the operators are started with."""

from collections.abc import Mapping, Sequence
from typing import Final

from e2e.mpi_operator.case import Case
from e2e.mpi_operator.cases import gangs, invalid, lifecycle, run_policy, spec, templates

PLAIN: Final = "plain"
VOLCANO: Final = "volcano"
COSCHEDULING: Final = "scheduler-plugins"
DOMAIN: Final = "cluster-domain"

GROUPS: Final[Mapping[str, Sequence[Case]]] = {
    PLAIN: (
        *spec.CASES,
        *templates.CASES,
        *run_policy.CASES,
        *lifecycle.CASES,
        *invalid.CASES,
    ),
    VOLCANO: gangs.CASES,
    COSCHEDULING: gangs.CASES,
    DOMAIN: spec.WITH_DOMAIN,
}
