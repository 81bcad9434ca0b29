"""Load manifests: YAML or JSON, several documents, ``-`` for stdin."""

import copy
import pathlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType
from typing import Any, Final

import attrs
import msgspec
import yaml

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.api.objects.jobs import JobObject
from dlctl.cli.manifests.file_bytes import check_text, read_bytes
from dlctl.cli.manifests.pod_references import containers
from dlctl.cli.manifests.unknown_fields import misspelt
from dlctl.cli.manifests.yaml_errors import describe_yaml_error
from dlctl.cli.manifests.yaml_lines import Document, Path, child, documents, line_of
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.local.apiserver.schemas.coercion import fill_defaults
from dlctl.name_lists import first_names

# Like the suffix that the server appends to a ``generateName``, of which it keeps 58 characters.
_SUFFIX: Final = "x5c7v"
_MAX_PREFIX_CHARS: Final = 58
_MAPS_OF_TEXT: Final = frozenset({"annotations", "labels"})
_SET_BY_SERVERS: Final = frozenset({"managedFields", "resourceVersion", "uid"})
_COMPILED: Final = b"\x7fELF"
# The first line of scripts; that of a manifest which dlctl executes is a comment.
_SHEBANG: Final = re.compile("#!(?!.*dlctl)")
# The names under which kustomize looks for what to build.
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@attrs.frozen(eq=False)
class _Place:
    """Where an object was read."""

    file: str
    # The number of its document, if the file has several.
    document: int | None
    node: yaml.Node
    # The keys of fields that are set twice, in the whole document.
    repeated_in_document: Sequence[yaml.ScalarNode] = ()

    def __str__(self) -> str:
        return self.of(())

    def of(self, path: Path) -> str:
        """Return the place of a field: file, document, line."""
        document = f", document {self.document}" if self.document else ""
        return f"{self.file}{document}, line {self.line(path)}"

    def line(self, path: Path) -> int:
        """Return the line of a field, counted from 1."""
        return line_of(self.node, path)

    @property
    def is_json(self) -> bool:
        """Return whether the object is written as in JSON: in braces or brackets."""
        return isinstance(self.node, yaml.CollectionNode) and bool(self.node.flow_style)

    @property
    def repeated(self) -> list[tuple[str, int]]:
        """Return the fields that are set twice here, with their lines."""
        first, last = self.node.start_mark.line, self.node.end_mark.line
        lines = [(key.value, int(key.start_mark.line)) for key in self.repeated_in_document]
        return [(name, line + 1) for name, line in lines if first <= line <= last]

    def repeats(self, name: str) -> bool:
        """Return whether the object itself has a field twice."""
        # Its node has the fields of << as well.
        keys = [key for key, _ in self.node.value if key.value == name]
        return any(key in self.repeated_in_document for key in keys)

    def items(self) -> Iterator["_Place"]:
        """Yield the places of the items of a ``List``."""
        node = child(self.node, "items")
        for item in node.value if isinstance(node, yaml.SequenceNode) else ():
            yield attrs.evolve(self, node=item)


@attrs.frozen(eq=False)
class Manifest:
    """An object, and where it was read; None for one that no file has."""

    obj: JSON
    place: _Place | None = None

    @property
    def title(self) -> str:
        """Return the kind and name, for messages."""
        metadata = self.obj.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName") or "without a name"
        return f"{self.obj.get('kind')} {name}"

    @property
    def repeated_fields(self) -> list[str]:
        """Return which fields are set twice; as in kubectl, the last ones count."""
        return [
            f"line {line}: field {name!r} is set twice: the last one counts, remove the other"
            for name, line in (self.place.repeated if self.place else ())
        ]

    def titled(self, path: Path = ()) -> str:
        """Return the title, after the place of a field, if it is known."""
        return f"{self.place.of(path)}: {self.title}" if self.place else self.title


def load(files: Iterable[str]) -> Iterator[Manifest]:
    """Yield the objects of the files in order, and the items of a ``List``.

    :raises ConfigError: if a file cannot be read, or contains something else than objects.
    """
    for name in files:
        yield from parse(_text(name), name)


def parse(text: str, name: str) -> Iterator[Manifest]:
    """Yield the objects of a file's text.

    :raises ConfigError: if it contains something else than objects.
    """
    read = _documents(text, name)
    for number, each in enumerate(read, 1):
        value, many = each.value, len(read) > 1
        document = _Place(name, number if many else None, each.node, each.repeated)
        if _is_list(value):
            items = value.get("items") or []
            if not isinstance(items, list):
                raise ConfigError(f"{document.of(('items',))}: items must be a list")
            for item, place in zip(items, document.items(), strict=False):
                if _is_list(item):
                    raise ConfigError(f"{place}: a list in a list: move its items to the outer one")
                yield _manifest(item, place)
        else:
            yield _manifest(value, document)


def _is_list(value: Any) -> bool:
    """Return whether a document is a ``List``, or one of a kind, as API servers return it."""
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    return kind == "List" or ("items" in value and str(kind).endswith("List"))


def _manifest(value: Any, place: _Place) -> Manifest:
    if isinstance(value, dict) and (field := misspelt(value, "kind")):
        raise ConfigError(f"{place.of(field.path)}: {field.message}")
    if isinstance(value, list):
        separation = "" if place.is_json else "separate its objects by ---, or "
        raise ConfigError(
            f"{place}: a document is a list: {separation}make them the items of an object of kind "
            "List"
        )
    if not isinstance(value, dict) or not value.get("kind"):
        if pathlib.Path(place.file).name in _KUSTOMIZATIONS:
            raise _KustomizationError(pathlib.Path(place.file).parent)
        raise ConfigError(f"{place}: a document has no kind; each must be a Kubernetes object")
    if not isinstance(value.get("metadata"), dict | NoneType):
        raise ConfigError(f"{place.of(('metadata',))}: metadata must be a mapping")
    if place.repeats("kind"):
        yaml_fix = "begin the second object with a line ---"
        fix = "give each object braces of its own" if place.is_json else yaml_fix
        raise ConfigError(f"{place.of(('kind',))}: kind is set twice: {fix}")
    return Manifest(value, place)


def check_built(manifests: Iterable[Manifest]) -> None:
    """Check that no manifest is one for kustomize.

    :raises ConfigError: with the way to build it.
    """
    for each in manifests:
        api_version, place = str(each.obj.get("apiVersion")), each.place
        if place and api_version.startswith("kustomize.config.k8s.io/"):
            raise _KustomizationError(pathlib.Path(place.file).parent)


class _KustomizationError(ConfigError):
    """A directory that kustomize must build first."""

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__(
            f"{directory} is a kustomization: build it with "
            f"`kubectl kustomize {shlex.quote(str(directory))}`, and pipe the output to `-`"
        )


def program_error(name: str) -> ConfigError:
    """Return that a file or module is no manifest, with the way to run it."""
    return ConfigError(
        f"{name} is a program: `dlctl run` takes it with the kind of job that runs it, such as "
        "--kind pytorch"
    )


def no_job_error(manifests: Sequence[Manifest]) -> ConfigError:
    """Return that there is nothing to run, with what there is."""
    named = [f"{each.title} ({each.obj.get('apiVersion')})" for each in manifests]
    found = f"none of the manifests is a job of a kind that dlctl serves: {first_names(named)}"
    reason = found if manifests else "there is no object in the manifests"
    return ConfigError(f"{reason}; `dlctl new pytorch` prints a job")


def as_new(manifest: JSON, default: str | None) -> JSON:
    """Return the manifest as a request creates it, with its namespace; an empty one is none.

    What servers set is left out, as in an exported object, and so are fields of its metadata that
    are null: to the API server they are absent. A null label or annotation is empty to it. Without
    a default the kind has no namespaces.
    """
    metadata = {
        name: _without_nulls(value) if name in _MAPS_OF_TEXT else value
        for name, value in (manifest.get("metadata") or {}).items()
        if value is not None and name not in _SET_BY_SERVERS
    }
    if default is not None:
        metadata["namespace"] = metadata.get("namespace") or default or "default"
    return {**{n: v for n, v in manifest.items() if n != "status"}, "metadata": metadata}


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: "" if text is None else text for key, text in value.items()}


def with_example_name(manifest: JSON) -> JSON:
    """Return a manifest that has only a ``generateName`` with a name like the server's."""
    metadata = manifest.get("metadata") or {}
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str) or not prefix:
        return manifest
    return {**manifest, "metadata": {**metadata, "name": prefix[:_MAX_PREFIX_CHARS] + _SUFFIX}}


def job_kind(kinds: Iterable[Kind], manifest: JSON) -> Kind | None:
    """Return the kind of a job manifest, or None for other objects."""
    return kind_of_api_version(kinds, str(manifest.get("apiVersion")), str(manifest.get("kind")))


def scaler_resource(kinds: Iterable[Kind], manifest: JSON) -> tuple[Kind, Resource] | None:
    """Return the resource of a manifest that scales jobs, and their kind; None for others."""
    wanted = (manifest.get("apiVersion"), manifest.get("kind"))
    for kind in kinds:
        for resource in kind.scalers:
            if (resource.api_version, resource.kind) == wanted:
                return kind, resource
    return None


def as_job_object(kind: Kind, manifest: JSON) -> JobObject:
    """Return a manifest as the controller decodes it, with the defaults that the server writes."""
    dialect = kind.dialects[kind.resource.version]
    if dialect.stores_defaults and isinstance(manifest.get("spec"), dict):
        manifest = copy.deepcopy(manifest)
        fill_defaults(manifest["spec"], dict(dialect.spec_schema()))
    try:
        return msgspec.json.decode(msgspec.json.encode(manifest), type=kind.object_type)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the metadata of the manifest is malformed: {error}") from error
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{error.object!r} is not UTF-8, as the API needs it: rename the file, or change it"
        ) from error


def replica_names(kind: Kind, manifest: JSON) -> list[str]:
    """Return the names of a job's replicas; empty if they are not known yet."""
    obj = kind.decode(as_job_object(kind, as_new(manifest, "default")))
    try:
        job = kind.read(obj)
    except InvalidJobError:
        return []
    # Replicas of a job that scales come and go.
    return [] if job.elasticity else [str(replica) for replica in job.replicas]


def read_valid(kind: Kind, manifest: JSON) -> Job:
    """Return the job that a valid manifest describes."""
    named = with_example_name(as_new(manifest, "default"))
    return kind.read(kind.decode(as_job_object(kind, named)))


def images(manifest: Any) -> Iterator[str]:
    """Yield the images of all containers, wherever in the manifest they are."""
    if isinstance(manifest, dict):
        for _, container in containers(manifest, ()):
            if isinstance(name := container.get("image"), str):
                yield name
        manifest = list(manifest.values())
    if isinstance(manifest, list):
        for part in manifest:
            yield from images(part)


def _text(name: str) -> str:
    if name.startswith(("http://", "https://")):
        raise ConfigError(f"{name}: save it as a file, or pipe it to `-`")
    if not name:
        raise ConfigError("the name of a file is empty")
    path = pathlib.Path(name)
    if name != "-" and path.is_dir():
        if any((path / each).exists() for each in _KUSTOMIZATIONS):
            raise _KustomizationError(path)
        raise ConfigError(f"{name} is a directory: name its files, such as {path}/*.yaml")
    data = read_bytes(name)
    if name != "-" and (data.startswith(_COMPILED) or path.suffix == ".py"):
        raise program_error(name)
    check_text(name, data)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name} is not UTF-8 (line {line}): save it in that encoding") from error


def _documents(text: str, name: str) -> list[Document]:
    is_script = name != "-" and _SHEBANG.match(text) is not None
    try:
        read = list(documents(text))
    except RecursionError:
        raise ConfigError(f"{name}: its lists and mappings are nested too deeply") from None
    except yaml.YAMLError as error:
        if is_script:
            raise program_error(name) from error
        is_yaml = isinstance(error, yaml.constructor.ConstructorError)
        title = name if is_yaml else f"{name} is not YAML"
        raise ConfigError(f"{title}: {describe_yaml_error(error, text)}") from error
    if is_script and not any(isinstance(each.value, dict) for each in read):
        raise program_error(name)
    return read
