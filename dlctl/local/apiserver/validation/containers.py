"""Validation of containers: names, images, ports, environment, mounts, resources."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.quantities import parse_quantity
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import (
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    port_name,
    qualified_name,
)

_PULL: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_RESOURCE_FIELDS: Final = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_FIELD_PATHS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.hostname",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)


def container_errors(container: JSON, path: str, volumes: set[str]) -> Iterator[FieldError]:
    """Yield the errors of the container; ``volumes`` are the names that it may mount."""
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        yield FieldError.required(f"{path}.name")
    for complaint in dns_label(name) if name else ():
        yield FieldError.invalid(f"{path}.name", name, complaint)
    if not image:
        yield FieldError.required(f"{path}.image")
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        yield FieldError.invalid(f"{path}.image", image, detail)
    yield from _supported(container, "imagePullPolicy", _PULL, path)
    yield from _supported(container, "terminationMessagePolicy", _MESSAGES, path)
    yield from _ports(container.get("ports", []), f"{path}.ports")
    yield from _env(container.get("env", []), f"{path}.env")
    yield from _env_from(container.get("envFrom", []), f"{path}.envFrom")
    yield from _mounts(container.get("volumeMounts", []), f"{path}.volumeMounts", volumes)
    yield from _resources(container.get("resources", {}), f"{path}.resources")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            yield from _probe(container[probe], f"{path}.{probe}", once=probe != "readinessProbe")


def _supported(obj: JSON, name: str, allowed: Sequence[str], path: str) -> Iterator[FieldError]:
    if name in obj and obj[name] not in allowed:
        yield FieldError.unsupported(f"{path}.{name}", obj[name], allowed)


def _ports(ports: Sequence[JSON], path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    taken: set[tuple[Any, ...]] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        name = port.get("name")
        if name:
            for complaint in port_name(name):
                yield FieldError.invalid(f"{where}.name", name, complaint)
            if name in names:
                yield FieldError.duplicate(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield FieldError.required(f"{where}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{where}.hostPort")
            key = (port.get("protocol"), port.get("hostIP", ""), port["hostPort"])
            if key in taken:
                shown = "/".join(str(part) for part in key)
                yield FieldError.duplicate(f"{where}.hostPort", shown)
            taken.add(key)
        yield from _supported(port, "protocol", _PROTOCOLS, where)


def port_number(value: int, path: str) -> Iterator[FieldError]:
    if not 1 <= value <= 65535:
        yield FieldError.invalid(path, value, "must be between 1 and 65535, inclusive")


def _env(variables: Sequence[JSON], path: str) -> Iterator[FieldError]:
    for index, each in enumerate(variables):
        where = f"{path}[{index}]"
        name = each.get("name", "")
        if not name:
            yield FieldError.required(f"{where}.name")
        for complaint in env_name(name) if name else ():
            yield FieldError.invalid(f"{where}.name", name, complaint)
        if "valueFrom" in each:
            yield from _value_from(each, f"{where}.valueFrom")


def _value_from(variable: JSON, path: str) -> Iterator[FieldError]:
    source = variable["valueFrom"]
    found = [name for name in _SOURCES if name in source]
    if not found:
        names = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield FieldError.invalid(path, "", f"must specify one of: {names} or `{_SOURCES[-1]}`")
    elif variable.get("value"):
        yield FieldError.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield FieldError.invalid(path, "", "may not have more than one field specified at a time")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _key_ref(source[name], f"{path}.{name}")
    if "fieldRef" in source:
        yield from _field_ref(source["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        yield from _resource_field_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef")


def _key_ref(reference: JSON, path: str) -> Iterator[FieldError]:
    name, key = reference.get("name", ""), reference.get("key", "")
    for complaint in dns_subdomain(name):
        yield FieldError.invalid(f"{path}.name", name, complaint)
    if not key:
        yield FieldError.required(f"{path}.key")
    for complaint in config_key(key) if key else ():
        yield FieldError.invalid(f"{path}.key", key, complaint)


def _resource_field_ref(reference: JSON, path: str) -> Iterator[FieldError]:
    resource = reference.get("resource", "")
    if not resource:
        yield FieldError.required(f"{path}.resource")
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGES):
        yield FieldError.unsupported(f"{path}.resource", resource, _RESOURCE_FIELDS)


def _field_ref(reference: JSON, path: str) -> Iterator[FieldError]:
    field = reference.get("fieldPath", "")
    key, bracket, _ = field.partition("[")
    if not field:
        yield FieldError.required(f"{path}.fieldPath")
    elif not (bracket and key in ("metadata.labels", "metadata.annotations")):
        if field not in _FIELD_PATHS:
            allowed = sorted(_FIELD_PATHS)
            if field.split(".")[0] in ("metadata", "spec", "status") and "." in field:
                yield FieldError.unsupported(f"{path}.fieldPath", field, allowed)
            else:
                detail = "error converting fieldPath: field label not supported: "
                yield FieldError.invalid(f"{path}.fieldPath", field, detail + field)


def _env_from(sources: Sequence[JSON], path: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        prefix = source.get("prefix", "")
        for complaint in env_name(prefix) if prefix else ():
            yield FieldError.invalid(f"{where}.prefix", prefix, complaint)
        found = [field for field in ("configMapRef", "secretRef") if field in source]
        # Without the index, as in Kubernetes.
        if not found:
            detail = "must specify one of: `configMapRef` or `secretRef`"
            yield FieldError.invalid(path, "", detail)
        elif len(found) > 1:
            detail = "may not have more than one field specified at a time"
            yield FieldError.invalid(path, "", detail)
        for field in found:
            name = source[field].get("name", "")
            if not name:
                yield FieldError.required(f"{where}.{field}.name")
            # Kubernetes takes the name for a prefix, which may end with a dash.
            checked = f"{name[:-2]}a" if name.endswith("-") and len(name) > 1 else name
            for complaint in dns_subdomain(checked) if name else ():
                yield FieldError.invalid(f"{where}.{field}.name", name, complaint)


def _mounts(mounts: Sequence[JSON], path: str, volumes: set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        name, at = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield FieldError.required(f"{where}.name")
        if name not in volumes:
            yield FieldError.not_found(f"{where}.name", name)
        if not at:
            yield FieldError.required(f"{where}.mountPath")
        if at in seen:
            yield FieldError.invalid(f"{where}.mountPath", at, "must be unique")
        seen.add(at)
        # Without the index, as in Kubernetes.
        for field in ("subPath", "subPathExpr"):
            sub = mount.get(field, "")
            if sub.startswith("/"):
                yield FieldError.invalid(f"{path}.{field}", sub, "must be a relative path")
            if ".." in sub.split("/"):
                yield FieldError.invalid(f"{path}.{field}", sub, "must not contain '..'")
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield FieldError.invalid(f"{where}.subPathExpr", mount["subPathExpr"], detail)


def _resources(resources: JSON, path: str) -> Iterator[FieldError]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _resource_name(name, f"{path}.{field}[{name}]")
            amount = parse_quantity(value)
            if amount < 0:
                detail = "must be greater than or equal to 0"
                yield FieldError.invalid(f"{path}.{field}[{name}]", value, detail)
            if _is_extended(name) and amount != amount.to_integral_value():
                yield FieldError.invalid(f"{path}.{field}[{name}]", value, "must be an integer")
    for name, value in requests.items():
        limit = limits.get(name)
        extended = name not in _STANDARD
        if limit is None and extended:
            detail = "Limit must be set for non overcommitable resources"
            yield FieldError.required(f"{path}.limits", detail)
        elif limit is not None and extended and parse_quantity(value) != parse_quantity(limit):
            detail = f"must be equal to {name} limit of {limit}"
            yield FieldError.invalid(f"{path}.requests", value, detail)
        elif limit is not None and parse_quantity(value) > parse_quantity(limit):
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield FieldError.invalid(f"{path}.requests", value, detail)


def _is_extended(name: str) -> bool:
    """Return whether a resource is none of Kubernetes' own, such as ``nvidia.com/gpu``."""
    return "/" in name and "kubernetes.io/" not in name


def _resource_name(name: str, path: str) -> Iterator[FieldError]:
    for complaint in qualified_name(name):
        yield FieldError.invalid(path, name, complaint)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield FieldError.invalid(path, name, "must be a standard resource type or fully qualified")
        yield FieldError.invalid(path, name, "must be a standard resource for containers")


def _probe(probe: JSON, path: str, *, once: bool) -> Iterator[FieldError]:
    if not any(handler in probe for handler in _HANDLERS):
        yield FieldError.required(path, "must specify a handler type")
    if "exec" in probe and not probe["exec"].get("command"):
        yield FieldError.required(f"{path}.exec.command")
    if once and probe.get("successThreshold", 1) != 1:
        detail = "must be 1"
        yield FieldError.invalid(f"{path}.successThreshold", probe["successThreshold"], detail)
