"""Annotations of jobs that dlctl would ignore in silence: the API server takes any. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.cli.suggestions import did_you_mean
from dlctl.dialects.failure_policy import ANNOTATION as FAILURE_POLICY_ANNOTATION
from dlctl.dialects.kubeflow.mpi_v2beta1.dialect import TTL_DELETES_JOB_ANNOTATION
from dlctl.dialects.kubeflow.mpi_v2beta1.version_choice import VERSION_ANNOTATION
from dlctl.dialects.kubeflow.replica_map import EXIT_CODE_POLICY_ANNOTATION
from dlctl.dialects.service_annotation import SERVICE_ANNOTATION
from dlctl.errors import quoted
from dlctl.frameworks.horovod.ssh_access import BETWEEN_WORKERS_ANNOTATION, HOME_ANNOTATION

_PREFIX: Final = "dlctl.dev/"
_BOOLEAN: Final = ("true", "false")
# The values of those where another value is like none; wrong ones of the others fail the job.
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    BETWEEN_WORKERS_ANNOTATION: _BOOLEAN,
    EXIT_CODE_POLICY_ANNOTATION: ("kubeflow",),
    FAILURE_POLICY_ANNOTATION: (),
    HOME_ANNOTATION: (),
    SERVICE_ANNOTATION: (),
    TTL_DELETES_JOB_ANNOTATION: _BOOLEAN,
    VERSION_ANNOTATION: (),
}


def ignored_annotations(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each annotation that has no effect, and why."""
    for name, value in annotations.items():
        if not name.startswith(_PREFIX):
            continue
        values = _VALUES.get(name)
        if values is None:
            yield name, f"unknown annotation{did_you_mean(name, _VALUES)}"
        elif values and value not in values:
            yield name, f"is {quoted(value)}: use {' or '.join(values)}, or remove it"
