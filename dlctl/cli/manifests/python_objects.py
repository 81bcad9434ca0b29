"""Manifests that a Python program has made, from dictionaries."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.cli.manifests.loading import Manifest
from dlctl.cli.manifests.yaml_lines import Path, dotted
from dlctl.errors import ConfigError


def python_manifest(value: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a dictionary; its lists may be tuples.

    :raises ConfigError: if it has no kind, its metadata is no mapping, or it has a value that JSON
        does not have; this names the field.
    """
    manifest = Manifest({str(key): _json(each, (str(key),)) for key, each in value.items()})
    if not manifest.obj.get("kind"):
        raise ConfigError("a manifest has no kind; each must be a Kubernetes object")
    if not isinstance(manifest.obj.get("metadata"), dict | None):
        raise ConfigError("metadata must be a mapping")
    return manifest


def _json(value: object, path: Path) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json(each, (*path, str(key))) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each, (*path, index)) for index, each in enumerate(value)]
    try:
        built = msgspec.to_builtins(value)
    except TypeError:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ConfigError(
            f"{dotted(path)}: is a {name}, which JSON does not have: convert it, as with int() or "
            "str()"
        ) from None
    if isinstance(built, float) and not math.isfinite(built):
        raise ConfigError(f"{dotted(path)}: is {built}, a number that JSON does not have")
    return _json(built, path) if isinstance(built, dict | list) else built
