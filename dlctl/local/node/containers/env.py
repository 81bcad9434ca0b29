"""Environment, command and arguments of a container, by the rules of the Kubernetes docs.

Pure: referenced objects are passed in. Only a handful of the machine's own variables is inherited,
so that a job does not depend on the shell it was started from.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, TypeVar

import attrs

from dlctl.api.quantities import parse_quantity
from dlctl.errors import DlctlError
from dlctl.local.node.api_types import (
    Container,
    EnvVar,
    NodePod,
    ResourceFieldSelector,
    ResourceRequirements,
)

T = TypeVar("T")

# As messages of kubelets name them.
SourceKind = Literal["configmap", "secret"]

INHERITED: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER")

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


class MissingReferenceError(DlctlError):
    """A ConfigMap, Secret, key or field that a container needs is missing (yet), or is no text."""


@attrs.frozen
class ConfigSources:
    """The existing ConfigMaps and Secrets that a pod refers to, by name."""

    config_maps: Mapping[str, Mapping[str, bytes]] = attrs.field(factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = attrs.field(factory=dict)

    def content(
        self, kind: SourceKind, name: str | None, *, optional: bool | None
    ) -> Mapping[str, bytes] | None:
        """Return the values of an object by key; None if it is optional and does not exist.

        :raises MissingReferenceError: if it is required and does not exist.
        """
        found = (self.secrets if kind == "secret" else self.config_maps).get(name or "")
        if found is None and not optional:
            raise MissingReferenceError(f'{kind} "{name or ""}" not found')
        return found


@attrs.frozen
class PodPlacement:
    """Where a pod runs, as exposed to its containers."""

    node_name: str
    pod_ip: str
    host_ip: str
    # The node's own resources: the limits of a container that sets none.
    allocatable: Mapping[str, str] = attrs.field(factory=dict)


def expand(text: str, env: Mapping[str, str]) -> str:
    """Expand ``$(NAME)``; unknown names stay as they are, and ``$$`` stands for ``$``."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        return "$" if name is None else env.get(name, found.group())

    return _REFERENCE.sub(value, text)


def expand_all(text: str, env: Mapping[str, str]) -> str:
    """Like :func:`expand`, but raise :class:`MissingReferenceError` for an unknown name."""
    for name in _REFERENCE.findall(text):
        if name and name not in env:
            raise MissingReferenceError(f"{text}: variable {name} is not set: add it to env")
    return expand(text, env)


def field(pod: NodePod, path: str, place: PodPlacement) -> str:
    """Return a field of the pod as a string, or raise :class:`MissingReferenceError`."""
    if found := _SUBSCRIPT.fullmatch(path):
        which, key = found.groups()
        held = pod.metadata.labels if which == "labels" else pod.metadata.annotations
        return (held or {}).get(key, "")
    fields = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace or "",
        "metadata.uid": pod.metadata.uid,
        "metadata.labels": _format_map(pod.metadata.labels),
        "metadata.annotations": _format_map(pod.metadata.annotations),
        "spec.nodeName": place.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
    }
    if path not in fields:
        raise MissingReferenceError(f"fieldPath {path!r} is not supported")
    return fields[path]


def resource_field(
    pod: NodePod, reference: ResourceFieldSelector, place: PodPlacement, default_container: str = ""
) -> str:
    """Return a limit or request in units of the divisor, rounded up."""
    wanted = reference.container_name or default_container
    named = (each for each in pod.spec.all_containers if each.name == wanted)
    if (container := next(named, None)) is None:
        raise MissingReferenceError(f'resourceFieldRef: container "{wanted}" is not in the pod')
    which, _, resource = reference.resource.partition(".")
    resources = container.resources or ResourceRequirements()
    held = resources.limits if which == "limits" else resources.requests
    amount = parse_quantity(str((held or {}).get(resource, 0)))
    if which == "limits" and not amount:
        amount = parse_quantity(place.allocatable.get(resource, "0"))
    divisor = parse_quantity(str(reference.divisor or 0)) or Decimal(1)
    return str(int((amount / divisor).to_integral_value(ROUND_CEILING)))


def _format_map(entries: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted((entries or {}).items()))


def environment(
    container: Container, pod: NodePod, place: PodPlacement, sources: ConfigSources
) -> dict[str, str]:
    """Return the variables of a container's manifest; later ones may refer to earlier ones."""
    env: dict[str, str] = {}
    for source in container.env_from or ():
        prefix = source.prefix or ""
        for kind, reference in _kinds(source.config_map_ref, source.secret_ref):
            content = sources.content(kind, reference.name, optional=reference.optional) or {}
            holder = f'{kind} "{reference.name}"'
            env |= {prefix + key: _text(content, key, holder) for key in content}
    for variable in container.env or ():
        value = _value(variable, container, pod, place, sources)
        if value is not None:
            env[variable.name] = expand(value, env) if variable.value_from is None else value
    return env


def _kinds(config_map: T | None, secret: T | None) -> Iterator[tuple[SourceKind, T]]:
    """Yield the given ones of two references, each with the kind that it is to."""
    if config_map is not None:
        yield "configmap", config_map
    if secret is not None:
        yield "secret", secret


def _value(
    variable: EnvVar,
    container: Container,
    pod: NodePod,
    place: PodPlacement,
    sources: ConfigSources,
) -> str | None:
    source = variable.value_from
    if source is None:
        return variable.value or ""
    if source.field_ref is not None:
        return field(pod, source.field_ref.field_path, place)
    if source.resource_field_ref is not None:
        return resource_field(pod, source.resource_field_ref, place, container.name)
    for kind, reference in _kinds(source.config_map_key_ref, source.secret_key_ref):
        content = sources.content(kind, reference.name, optional=reference.optional) or {}
        if reference.key in content:
            return _text(content, reference.key, f'{kind} "{reference.name}"')
        if reference.optional:
            return None
        raise MissingReferenceError(f'key "{reference.key}" not found in {kind} "{reference.name}"')
    raise MissingReferenceError(f"env {variable.name}: unsupported valueFrom")


def _text(content: Mapping[str, bytes], key: str, holder: str) -> str:
    try:
        return content[key].decode()
    except UnicodeDecodeError:
        raise MissingReferenceError(
            f'key "{key}" in {holder} is not UTF-8 text: mount it as a volume'
        ) from None


def references(pod: NodePod) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and of the Secrets that the pod refers to."""
    config_maps: set[str | None] = set()
    secrets: set[str | None] = set()
    for container in pod.spec.all_containers:
        for bulk in container.env_from or ():
            config_maps.add(bulk.config_map_ref.name if bulk.config_map_ref else None)
            secrets.add(bulk.secret_ref.name if bulk.secret_ref else None)
        for source in [variable.value_from for variable in container.env or ()]:
            if source is not None:
                config_maps.add(
                    source.config_map_key_ref.name if source.config_map_key_ref else None
                )
                secrets.add(source.secret_key_ref.name if source.secret_key_ref else None)
    for volume in pod.spec.volumes or ():
        projected = volume.projected.sources if volume.projected else None
        for files in [volume, *(projected or ())]:
            config_maps.add(files.config_map and files.config_map.name)
            secrets.add(files.secret and (files.secret.secret_name or files.secret.name))
    return {name for name in config_maps if name}, {name for name in secrets if name}
