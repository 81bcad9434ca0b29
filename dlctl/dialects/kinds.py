"""The kinds that dlctl serves: each has a framework and the dialects of its API group.

Frameworks of other packages get dl-operator's group and form without an entry here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from dlctl.api.defaults import JobDefaults
from dlctl.dialects.et_operator import kinds as et_operator
from dlctl.dialects.kind import Kind
from dlctl.dialects.kubeflow import kinds as kubeflow
from dlctl.dialects.replica_lists import kinds as replica_lists
from dlctl.errors import ConfigError
from dlctl.frameworks.dljob import DLJob

Frameworks = Mapping[str, type[DLJob]]
# One line per dialect package. If two packages serve a kind of the same name, the first wins.
_SERVED_KINDS: Final[tuple[Callable[[Frameworks], Iterator[Kind]], ...]] = (
    kubeflow.served_kinds,
    et_operator.served_kinds,
    replica_lists.served_kinds,
)


def served_kinds(frameworks: Frameworks, defaults: JobDefaults | None = None) -> list[Kind]:
    """Return the served kinds: Kubeflow's, et-operator's, and those of the frameworks by type.

    ``defaults`` apply to jobs that do not set them.

    :raises ConfigError: if two kinds would be served under one name.
    """
    served: dict[str, Kind] = {}
    for kind in (kind for kinds in _SERVED_KINDS for kind in kinds(frameworks)):
        name = kind.resource.group_resource
        if name in served:
            framework = next(iter(kind.dialects.values())).framework
            raise ConfigError(
                f"{framework.__module__}.{framework.__qualname__} would be served as {name}, "
                "which is taken: choose another job_type"
            )
        served[name] = attrs.evolve(kind, defaults=defaults or JobDefaults())
    return list(served.values())


def kind_of_api_version(kinds: Iterable[Kind], api_version: str, name: str) -> Kind | None:
    """Return the kind of a manifest's ``apiVersion`` and ``kind``, served at that version."""
    group, _, version = api_version.rpartition("/")
    for kind in kinds:
        resource = kind.resource
        if (resource.group, resource.kind) == (group, name) and version in kind.dialects:
            return attrs.evolve(kind, resource=attrs.evolve(resource, version=version))
    return None
