"""Environment, command and arguments of a container, by the rules of the Kubernetes docs.

Pure: referenced objects are passed in. Only a handful of the machine's own variables is inherited,
so that a job does not depend on the shell it was started from.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from dlctl.local.node.api_types import Container, EnvVar, NodePod
from dlctl.local.node.containers.downward_api import PodPlacement, pod_field, resource_field
from dlctl.local.node.containers.references import (
    ConfigSources,
    MissingReferenceError,
    SourceKind,
)

T = TypeVar("T")

INHERITED: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER")

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


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
        return pod_field(pod, source.field_ref.field_path, place)
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
