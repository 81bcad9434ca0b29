"""Replica types in the entries of a list form, read and checked against the framework's."""

from collections.abc import Sequence

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.field_reader import FieldReader
from dlctl.errors import InvalidJobError, quoted
from dlctl.frameworks.dljob import DLJob


def read_replica_type(
    entry: FieldReader, name: str, framework: type[DLJob], *, default: str = ""
) -> str:
    """Read a replica type case-insensitively.

    :raises InvalidJobError: if it is missing with no default, or not one of the framework's.
    """
    text = entry.string(name, default)
    types = ", ".join(type_.upper() for type_ in framework.replica_types)
    if not text:
        raise InvalidJobError(f"is missing: give one of {types}", field=entry.path_of(name))
    if text.lower() not in framework.replica_types:
        raise InvalidJobError(
            f"is {quoted(text)}, but must be one of {types}", field=entry.path_of(name)
        )
    return text.lower()


def check_replica_types(specs: Sequence[ReplicaSpec], framework: type[DLJob], path: str) -> None:
    """Reject a job that lists a replica type twice, or several replicas of a singleton."""
    for index, spec in enumerate(specs):
        if any(other.type == spec.type for other in specs[:index]):
            raise InvalidJobError(
                f"lists {spec.type.upper()} twice: give one entry a type", field=f"{path}[{index}]"
            )
        if spec.type in framework.singletons and spec.replicas != 1:
            raise InvalidJobError(
                f"is {spec.replicas}, but there must be exactly 1 {spec.type.upper()}",
                field=f"{path}[{index}].replicas",
            )


def check_singletons(specs: Sequence[ReplicaSpec], framework: type[DLJob], path: str) -> None:
    """Reject a job without a replica that its framework requires."""
    listed = {spec.type for spec in specs}
    for type_ in framework.singletons:
        if type_ not in listed:
            raise InvalidJobError(
                f"lists no {type_.upper()}, but there must be exactly 1: add it", field=path
            )
