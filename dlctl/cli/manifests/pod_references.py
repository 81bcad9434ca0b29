"""References of a manifest's pod template: ConfigMaps, Secrets, the service account. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.cli.manifests.yaml_lines import Path

_BULK: Final = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
_KEYS: Final = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}


@attrs.frozen
class Reference:
    """An object that must exist before the pod can start, and the key that is read from it."""

    path: Path
    kind: str
    name: str
    key: str | None = None


def templates(value: Any, path: Path = ()) -> Iterator[tuple[Path, ReadOnlyJSON]]:
    """Yield the specs of the pod templates in an object, with their paths."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from templates(item, (*path, index))
    elif isinstance(value, dict):
        spec = value.get("spec")
        if path and path[-1] == "template" and isinstance(spec, dict):
            yield (*path, "spec"), spec
            return
        for key, item in value.items():
            yield from templates(item, (*path, key))


def containers(spec: ReadOnlyJSON, path: Path) -> Iterator[tuple[Path, ReadOnlyJSON]]:
    """Yield the containers of a pod, also the init containers, with their paths."""
    for field in ("initContainers", "containers"):
        for index, container in entries(spec, field):
            yield (*path, field, index), container


def entries(value: ReadOnlyJSON, field: str) -> Iterator[tuple[int, ReadOnlyJSON]]:
    """Yield the objects in a list of a manifest, with their indexes; others are invalid."""
    items = value.get(field)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield index, item


def entry(value: ReadOnlyJSON, field: str) -> ReadOnlyJSON:
    """Return an object of a manifest; empty if it is missing or invalid."""
    found = value.get(field)
    return found if isinstance(found, dict) else {}


def references(spec: ReadOnlyJSON, path: Path) -> Iterator[Reference]:
    """Yield the references of a pod that are not optional."""
    if account := spec.get("serviceAccountName"):
        yield Reference((*path, "serviceAccountName"), "ServiceAccount", account)
    for index, volume in entries(spec, "volumes"):
        where = (*path, "volumes", index)
        yield from _of_files(volume, where)
        for number, source in entries(entry(volume, "projected"), "sources"):
            yield from _of_files(source, (*where, "projected", "sources", number))
    for where, container in containers(spec, path):
        for index, source in entries(container, "envFrom"):
            yield from _of_variables(source, (*where, "envFrom", index), _BULK)
        for index, variable in entries(container, "env"):
            source = entry(variable, "valueFrom")
            yield from _of_variables(source, (*where, "env", index, "valueFrom"), _KEYS)


def _of_files(source: ReadOnlyJSON, path: Path) -> Iterator[Reference]:
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        found = entry(source, field)
        if found and not found.get("optional"):
            name = "secretName" if "secretName" in found else "name"
            yield Reference((*path, field, name), kind, found.get(name) or "")


def _of_variables(
    source: ReadOnlyJSON, path: Path, kinds: Mapping[str, str]
) -> Iterator[Reference]:
    for field, kind in kinds.items():
        found = entry(source, field)
        if found and not found.get("optional"):
            where = (*path, field, "name")
            yield Reference(where, kind, found.get("name") or "", found.get("key"))
