"""The checks of replica specs in the schema of Kubeflow's kinds, repeated on reading.

A job may come from a server with another schema, or none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.field_reader import FieldReader
from dlctl.dialects.kubeflow.kind import KubeflowKind
from dlctl.errors import InvalidJobError


def read_replica_type(kind: KubeflowKind, name: str, path: str) -> str:
    """Read a replica type case-insensitively, also under a former name.

    :raises InvalidJobError: if it is not one of the framework's.
    """
    type_ = kind.replicas.type_aliases.get(name.lower(), name.lower())
    if type_ not in kind.replica_types:
        types = ", ".join(map(kind.type_name, kind.replica_types))
        raise InvalidJobError(f"is not a replica type: it must be one of {types}", field=path)
    return type_


def check_replica_types(kind: KubeflowKind, specs: Any, path: str) -> None:
    """Reject a type that is listed twice in different spellings."""
    names = specs if isinstance(specs, Mapping) else ()
    types = Counter(read_replica_type(kind, name, f"{path}.{name}") for name in names)
    duplicate = next((type_ for type_, count in types.items() if count > 1), None)
    if duplicate is not None:
        shown = kind.type_name(duplicate)
        raise InvalidJobError(f"lists {shown} twice: give one spec a type", field=path)


def check_listed_types(kind: KubeflowKind, specs: Sequence[ReplicaSpec], path: str) -> None:
    """Reject a job that lists no type, or lacks one of which there must be a replica."""
    if not specs:
        types = ", ".join(map(kind.type_name, kind.replica_types))
        raise InvalidJobError(f"is missing: give a spec of at least one of {types}", field=path)
    for type_ in kind.framework.singletons:
        if not any(spec.type == type_ for spec in specs):
            message = f"lists no {kind.type_name(type_)}, but there must be exactly 1: add it"
            raise InvalidJobError(message, field=path)


def check_containers(kind: KubeflowKind, template: Mapping[str, Any], path: str) -> None:
    """Reject a pod template without the training container, or without an image for it."""
    path = f"{path}.spec.containers"
    containers = template["spec"]["containers"]
    for index, container in enumerate(containers):
        if not FieldReader(container, f"{path}[{index}]").string("image"):
            message = "is missing: name the image that the container runs"
            raise InvalidJobError(message, field=f"{path}[{index}].image")
    names = kind.container_names
    if kind.requires_container_name and all(each["name"] not in names for each in containers):
        message = f"has no container named {names[0]}: give that name to the one that trains"
        raise InvalidJobError(message, field=path)
