"""Validation of pods, as far as users of pod templates encounter it.

Containers and volumes have modules of their own. Defaults have been set before.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.containers import container_errors
from dlctl.local.apiserver.validation.names import (
    dns_label,
    dns_subdomain,
    label_value,
    qualified_name,
)
from dlctl.local.apiserver.validation.scheduling_gates import gate_create_errors, gate_errors
from dlctl.local.apiserver.validation.volumes import volume_errors

_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MAX_INT32: Final = 2**31 - 1


def pod_errors(pod: JSON) -> list[FieldError]:
    spec = pod.get("spec", {})
    return [*pod_spec_errors(spec, "spec"), *gate_create_errors(spec)]


def pod_spec_errors(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod's spec, or of a template's at another path."""
    volumes = spec.get("volumes", [])
    yield from volume_errors(volumes, f"{path}.volumes")
    names = {volume.get("name", "") for volume in volumes}
    yield from _containers(spec, path, names)
    yield from one_of(spec.get("restartPolicy", ""), _RESTART, f"{path}.restartPolicy")
    yield from one_of(spec.get("dnsPolicy", ""), _DNS, f"{path}.dnsPolicy")
    yield from _node_selector(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    yield from _tolerations(spec.get("tolerations", []), f"{path}.tolerations")
    yield from gate_errors(spec, path)
    for name in ("hostname", "subdomain"):
        for complaint in dns_label(spec[name]) if spec.get(name) else ():
            yield FieldError.invalid(f"{path}.{name}", spec[name], complaint)
    for name in ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"):
        for complaint in dns_subdomain(spec[name]) if spec.get(name) else ():
            yield FieldError.invalid(f"{path}.{name}", spec[name], complaint)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        detail = f"must be between 1 and {_MAX_INT32}, inclusive"
        yield FieldError.invalid(f"{path}.activeDeadlineSeconds", deadline, detail)
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        detail = "must be greater than or equal to 0"
        yield FieldError.invalid(f"{path}.terminationGracePeriodSeconds", grace, detail)


def one_of(value: Any, allowed: Sequence[str], path: str) -> Iterator[FieldError]:
    if not value:
        yield FieldError.required(path)
    elif value not in allowed:
        yield FieldError.unsupported(path, value, allowed)


def _containers(spec: JSON, path: str, volumes: set[str]) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield FieldError.required(f"{path}.containers")
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            where = f"{path}.{field}[{index}]"
            name = container.get("name", "")
            yield from container_errors(container, where, volumes)
            if name in names:
                yield FieldError.duplicate(f"{where}.name", name)
            names.add(name)
            if field == "initContainers" and container.get("restartPolicy") != "Always":
                for probe in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                    if probe in container:
                        detail = "may not be set for init containers without restartPolicy=Always"
                        yield FieldError.forbidden(f"{where}.{probe}", detail)


def _node_selector(selector: JSON, path: str) -> Iterator[FieldError]:
    for key, value in selector.items():
        for complaint in qualified_name(key):
            yield FieldError.invalid(path, key, complaint)
        for complaint in label_value(value):
            yield FieldError.invalid(path, value, complaint)


def _tolerations(tolerations: Sequence[JSON], path: str) -> Iterator[FieldError]:
    for index, each in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, value, operator = (each.get(name, "") for name in ("key", "value", "operator"))
        for complaint in qualified_name(key) if key else ():
            yield FieldError.invalid(f"{where}.key", key, complaint)
        if not key and operator != "Exists":
            detail = (
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"'
            )
            yield FieldError.invalid(f"{where}.operator", operator, detail)
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield FieldError.invalid(f"{where}.effect", each.get("effect", ""), detail)
        if operator == "Exists" and value:
            detail = "value must be empty when `operator` is 'Exists'"
            yield FieldError.invalid(f"{where}.operator", value, detail)
        elif operator not in ("", "Equal", "Exists", "Lt", "Gt"):
            yield FieldError.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if each.get("effect"):
            yield from one_of(each["effect"], _EFFECTS, f"{where}.effect")
