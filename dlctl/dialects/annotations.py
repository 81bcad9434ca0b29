"""Annotations of jobs that have few values: another one is ignored, and users are warned. Pure.

The API server takes any. Wrong values of other annotations fail the job.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.api.job import SpecWarning
from dlctl.errors import quoted
from dlctl.frameworks.horovod.ssh_access import BETWEEN_WORKERS_ANNOTATION

EXIT_CODE_POLICY_ANNOTATION: Final = "dlctl.dev/exit-code-policy"
TTL_DELETES_JOB_ANNOTATION: Final = "dlctl.dev/ttl-deletes-job"
_BOOLEAN: Final = ("true", "false")
VALUES_BY_ANNOTATION: Final[Mapping[str, tuple[str, ...]]] = {
    BETWEEN_WORKERS_ANNOTATION: _BOOLEAN,
    EXIT_CODE_POLICY_ANNOTATION: ("kubeflow",),
    TTL_DELETES_JOB_ANNOTATION: _BOOLEAN,
}


def ignored_values(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each annotation whose value has no effect, and why."""
    for name, values in VALUES_BY_ANNOTATION.items():
        value = annotations.get(name)
        if value is not None and value not in values:
            yield name, f"is {quoted(value)}: use {' or '.join(values)}, or remove it"


def annotation_warnings(annotations: Mapping[str, str]) -> Iterator[SpecWarning]:
    for name, reason in ignored_values(annotations):
        yield SpecWarning("AnnotationIgnored", f"metadata.annotations[{name}]: {reason}")
