"""Environment, command and arguments of a container, by the rules of the Kubernetes docs.

Pure: referenced objects are passed in. Only a handful of the machine's own variables is inherited,
so that a job does not depend on the shell it was started from.
"""

import re
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.errors import DlctlError
from dlctl.local.node.api_types import Container, EnvVar, LocalObjectReference, NodePod

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


@attrs.frozen
class PodPlacement:
    """Where a pod runs, as exposed to its containers."""

    node_name: str
    pod_ip: str
    host_ip: str


def expand(text: str, env: Mapping[str, str]) -> str:
    """Expand ``$(NAME)``; unknown names stay as they are, and ``$$`` stands for ``$``."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        return "$" if name is None else env.get(name, found.group())

    return _REFERENCE.sub(value, text)


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


def _format_map(entries: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted((entries or {}).items()))


def environment(
    container: Container, pod: NodePod, place: PodPlacement, sources: ConfigSources
) -> dict[str, str]:
    """Return the variables of a container's manifest; later ones may refer to earlier ones."""
    env: dict[str, str] = {}
    for source in container.env_from or ():
        prefix = source.prefix or ""
        for reference, held, kind in (
            (source.config_map_ref, sources.config_maps, "configmap"),
            (source.secret_ref, sources.secrets, "secret"),
        ):
            if reference is not None:
                content = _content(reference, held, kind)
                holder = f'{kind} "{reference.name}"'
                env |= {prefix + key: _text(content, key, holder) for key in content}
    for variable in container.env or ():
        value = _value(variable, pod, place, sources)
        if value is not None:
            env[variable.name] = expand(value, env) if variable.value_from is None else value
    return env


def _content(
    reference: LocalObjectReference, held: Mapping[str, Mapping[str, bytes]], kind: str
) -> Mapping[str, bytes]:
    if reference.name not in held and not reference.optional:
        raise MissingReferenceError(f'{kind} "{reference.name}" not found')
    return held.get(reference.name, {})


def _value(
    variable: EnvVar, pod: NodePod, place: PodPlacement, sources: ConfigSources
) -> str | None:
    source = variable.value_from
    if source is None:
        return variable.value or ""
    if source.field_ref is not None:
        return field(pod, source.field_ref.field_path, place)
    for reference, held, kind in (
        (source.config_map_key_ref, sources.config_maps, "configmap"),
        (source.secret_key_ref, sources.secrets, "secret"),
    ):
        if reference is None:
            continue
        content = _content(
            LocalObjectReference(name=reference.name, optional=reference.optional), held, kind
        )
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
    for container in [*(pod.spec.init_containers or ()), *pod.spec.containers]:
        for bulk in container.env_from or ():
            config_maps.add(bulk.config_map_ref and bulk.config_map_ref.name)
            secrets.add(bulk.secret_ref and bulk.secret_ref.name)
        for source in [variable.value_from for variable in container.env or ()]:
            if source is not None:
                config_maps.add(source.config_map_key_ref and source.config_map_key_ref.name)
                secrets.add(source.secret_key_ref and source.secret_key_ref.name)
    for volume in pod.spec.volumes or ():
        projected = volume.projected.sources if volume.projected else None
        for files in [volume, *(projected or ())]:
            config_maps.add(files.config_map and files.config_map.name)
            secrets.add(files.secret and (files.secret.secret_name or files.secret.name))
    return {name for name in config_maps if name}, {name for name in secrets if name}
