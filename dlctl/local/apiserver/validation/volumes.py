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
        if name == "hostPath" and ".." in volume[name].get("path", "").split("/"):
            value = volume[name]["path"]
            yield FieldError.invalid(f"{path}.hostPath.path", value, "must not contain '..'")
