"""The entries of both list forms: replica types, and how much of a pod template dlctl relies on.

What a template says beyond that is the API server's to judge.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dlctl.api.job import ReplicaSpec
from dlctl.dialects.wire import Fields
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob


def replica_type(entry: Fields, name: str, framework: type[DLJob], *, default: str = "") -> str:
    """Read a replica type in any case.

    :raises InvalidJobError: if it is missing with no default, or not one of the framework's.
    """
    text = entry.text(name, default)
    types = ", ".join(type_.upper() for type_ in framework.replica_types)
    if not text:
        raise InvalidJobError(f"is missing: give one of {types}", field=entry.at(name))
    if text.lower() not in framework.replica_types:
        raise InvalidJobError(f"is {text!r}, but must be one of {types}", field=entry.at(name))
    return text.lower()


def pod_template(value: Any, path: str, *, restart_policy: str = "") -> Mapping[str, Any]:
    """Read a pod template as far as children are made from it; the rest is passed on as it is.

    Without a restart policy for it, its own decides: never, or on failure.

    :raises InvalidJobError: where it is not of the form that the engine takes for granted.
    """
    if value is None:
        raise InvalidJobError("is missing: give a pod template", field=path)
    template = Fields(value, path)
    spec = template.object("spec")
    containers = [_container(container) for container in spec.items("containers")]
    if not containers:
        raise InvalidJobError("is empty: give a container", field=spec.at("containers"))
    # A container that exits 0 is done: Always, also as the default, would run it again.
    own_policy = "Never" if spec.text("restartPolicy") == "Never" else "OnFailure"
    pod_spec = spec.respelt(
        containers=containers,
        **{name: _objects(spec, name) for name in ("initContainers", "schedulingGates", "volumes")},
        restartPolicy=restart_policy or own_policy,
    )
    metadata = template.object("metadata")
    own = {name: _strings(metadata, name) for name in ("labels", "annotations")}
    return template.respelt(spec=pod_spec, metadata=metadata.respelt(**own) or None)


def training_container(template: Mapping[str, Any], framework: type[DLJob]) -> str:
    """Return the name of the container whose exit is the replica's."""
    names = [str(container["name"]) for container in template["spec"]["containers"]]
    name = framework.container_name()
    return name if name in names else names[0]


def check_types(specs: Sequence[ReplicaSpec], framework: type[DLJob], path: str) -> None:
    """Refuse a job that lists a replica type twice, or several of what there can be one."""
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
    """Refuse a job without a replica that its framework cannot do without."""
    listed = {spec.type for spec in specs}
    for type_ in framework.singletons:
        if type_ not in listed:
            raise InvalidJobError(
                f"lists no {type_.upper()}, but there must be exactly 1: add it", field=path
            )


def _container(container: Fields) -> Mapping[str, Any]:
    name = container.text("name")
    if not name:
        raise InvalidJobError("is missing: name the container", field=container.at("name"))
    lists = {field: _objects(container, field) for field in ("env", "ports", "volumeMounts")}
    return container.respelt(name=name, **lists)


def _objects(fields: Fields, name: str) -> list[Mapping[str, Any]] | None:
    return [item.respelt() for item in fields.items(name)] if name in fields else None


def _strings(fields: Fields, name: str) -> Mapping[str, str] | None:
    if name not in fields:
        return None
    strings = fields.value(name)
    # The keys are the user's own, so they are no field names: their case tells them apart.
    if not isinstance(strings, Mapping) or any(not isinstance(s, str) for s in strings.values()):
        raise InvalidJobError("must be an object of strings", field=fields.at(name))
    return strings
