"""Validation of volumes: the name and its single source."""

from collections.abc import Iterator, Sequence
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.serialization.builtin_types import kinds
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation.names import dns_label

# The field without which a source cannot be mounted.
_REQUIRED: Final = {
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}


def volume_errors(volumes: Sequence[JSON], path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        yield from _source(volume, where)
        name = volume.get("name", "")
        if not name:
            yield FieldError.required(f"{where}.name")
        for complaint in dns_label(name) if name else ():
            yield FieldError.invalid(f"{where}.name", name, complaint)
        if name and name in names:
            yield FieldError.duplicate(f"{where}.name", name)
        names.add(name)


def _source(volume: JSON, path: str) -> Iterator[FieldError]:
    # In the order of declaration, so that the second one is the error.
    found = [name for name in kinds()["Volume"].fields if name in volume and name != "name"]
    if not found:
        yield FieldError.required(path, "must specify a volume type")
    for extra in found[1:]:
        yield FieldError.forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")
    for name in found[:1]:
        required = _REQUIRED.get(name)
        if required and not volume[name].get(required):
            yield FieldError.required(f"{path}.{name}.{required}")
        if name in ("configMap", "secret"):
            yield from _items(volume[name].get("items", ()), f"{path}.{name}.items")
        if name == "projected":
            for index, source in enumerate(volume[name].get("sources", ())):
                yield from _projection(source, f"{path}.{name}.sources[{index}]")
                token = source.get("serviceAccountToken")
                if token is not None and not token.get("path"):
                    # Without the source, as in Kubernetes.
                    yield FieldError.required(f"{path}.{name}.path")
        if name == "hostPath" and ".." in volume[name].get("path", "").split("/"):
            value = volume[name]["path"]
            yield FieldError.invalid(f"{path}.hostPath.path", value, "must not contain '..'")


def _projection(source: JSON, path: str) -> Iterator[FieldError]:
    """Yield the errors of a source of a projected volume."""
    for name in ("secret", "configMap"):
        if name in source:
            if not source[name].get("name"):
                yield FieldError.required(f"{path}.{name}.name")
            yield from _items(source[name].get("items", ()), f"{path}.{name}.items")


def _items(items: Sequence[JSON], path: str) -> Iterator[FieldError]:
    """Yield the errors of the chosen keys of a Secret or ConfigMap."""
    for index, item in enumerate(items):
        for field in ("key", "path"):
            if not item.get(field):
                yield FieldError.required(f"{path}[{index}].{field}")
