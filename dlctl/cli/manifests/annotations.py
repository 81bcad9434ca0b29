"""Annotations of jobs that dlctl would ignore in silence: the API server takes any. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.cli.suggestions import did_you_mean
from dlctl.dialects.annotations import VALUES_BY_ANNOTATION, ignored_values
from dlctl.dialects.failure_policy.reader import ANNOTATION as FAILURE_POLICY_ANNOTATION
from dlctl.dialects.kubeflow.mpi_v2beta1.version_choice import VERSION_ANNOTATION
from dlctl.dialects.service_annotation import SERVICE_ANNOTATION
from dlctl.frameworks.horovod.ssh_access import HOME_ANNOTATION

_PREFIX: Final = "dlctl.dev/"
_KNOWN: Final = (
    *VALUES_BY_ANNOTATION,
    FAILURE_POLICY_ANNOTATION,
    HOME_ANNOTATION,
    SERVICE_ANNOTATION,
    VERSION_ANNOTATION,
)


def ignored_annotations(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each annotation that has no effect, and why."""
    for name in annotations:
        if name.startswith(_PREFIX) and name not in _KNOWN:
            yield name, f"unknown annotation{did_you_mean(name, _KNOWN)}"
    yield from ignored_values(annotations)
