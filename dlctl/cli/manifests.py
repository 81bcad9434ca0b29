"""Load manifests: YAML or JSON, several documents, ``-`` for stdin."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dlctl.api.job import JobObject
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version
from dlctl.errors import ConfigError

JSON = dict[str, Any]


def load(files: Iterable[str]) -> Iterator[JSON]:
    """Yield the objects of the files in order, and the items of a ``List``.

    :raises ConfigError: if a file cannot be read, or contains something else than objects.
    """
    for name in files:
        for document in _documents(name):
            if not isinstance(document, dict) or not document.get("kind"):
                raise ConfigError(
                    f"{name}: a document has no kind; each must be a Kubernetes object"
                )
            if document["kind"] == "List":
                yield from document.get("items") or []
            else:
                yield document


def namespaced(manifest: JSON, default: str) -> JSON:
    """Return the manifest with its namespace filled in."""
    metadata = {"namespace": default, **(manifest.get("metadata") or {})}
    return {**manifest, "metadata": metadata}


def job_kind(kinds: Iterable[Kind], manifest: JSON) -> Kind | None:
    """Return the kind of a job manifest, or None for other objects."""
    return kind_of_api_version(kinds, str(manifest.get("apiVersion")), str(manifest.get("kind")))


def as_job_object(manifest: JSON) -> JobObject:
    try:
        return msgspec.json.decode(msgspec.json.encode(manifest), type=JobObject)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the metadata of the manifest is malformed: {error}") from error


def images(manifest: Any) -> Iterator[str]:
    """Yield the images of all containers, wherever in the manifest they are."""
    if isinstance(manifest, dict):
        for container in [*_list(manifest, "initContainers"), *_list(manifest, "containers")]:
            if isinstance(container, dict) and isinstance(name := container.get("image"), str):
                yield name
        manifest = list(manifest.values())
    if isinstance(manifest, list):
        for part in manifest:
            yield from images(part)


def _list(manifest: JSON, field: str) -> list[Any]:
    value = manifest.get(field)
    return value if isinstance(value, list) else []


def _documents(name: str) -> list[Any]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {name}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} is not YAML: {_in_one_line(error)}") from error


def _in_one_line(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return str(error)
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
