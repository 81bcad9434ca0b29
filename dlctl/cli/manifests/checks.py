"""Problems of manifests, before anything is created: with file, line, field and fix."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from dlctl.api.core_types.type_tables import pod_types
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.cli.manifests.annotations import ignored_annotations
from dlctl.cli.manifests.loading import (
    Manifest,
    as_job_object,
    as_new,
    job_kind,
    scaler_resource,
    with_example_name,
)
from dlctl.cli.manifests.unknown_fields import UnknownField, misspelt, unknown_fields
from dlctl.cli.manifests.unserved_kinds import unserved_reason
from dlctl.cli.manifests.yaml_lines import Path, dotted, parsed
from dlctl.dialects.dialect import DecodedObject
from dlctl.dialects.kind import Kind
from dlctl.dialects.pods.pod_canonicalization import canonicalize_pod_template
from dlctl.dialects.value_formats import placeholder_fix
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.local.apiserver.validation.names import dns_label

if TYPE_CHECKING:
    from dlctl.cli.manifests.admission import Admission, AdmissionRejection

_META: Final = "ObjectMeta"
_OWN_NAMES: Final = ("name", "generateName")
_NAMES: Final = (*_OWN_NAMES, "namespace")


@attrs.frozen
class Problem:
    """One error in a manifest; ``message`` names the field, unless the path is empty."""

    manifest: Manifest
    path: Path
    message: str

    @property
    def line(self) -> int | None:
        """Return the line of the field, if the manifest comes from a file."""
        return self.manifest.place.line(self.path) if self.manifest.place else None

    def __str__(self) -> str:
        return f"{self.manifest.titled(self.path)}: {self.message}"


def check(kinds: Sequence[Kind], manifests: Iterable[Manifest], namespace: str) -> None:
    """Raise a ConfigError that lists the problems of all manifests, one per line."""
    report(manifest_problems(kinds, manifests, namespace), ConfigError)


def report(problems: Iterable[Problem], error: type[Exception]) -> None:
    """Raise the error if there are problems: one line for each."""
    lines = [str(problem) for problem in in_order(problems)]
    if len(lines) > 1:
        lines.insert(0, f"{len(lines)} problems:")
    if lines:
        raise error("\n  ".join(lines))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems in the order of their manifests and lines."""
    position: dict[int, int] = {}
    return sorted(
        problems,
        key=lambda each: (position.setdefault(id(each.manifest), len(position)), each.line or 0),
    )


def manifest_problems(
    kinds: Sequence[Kind], manifests: Iterable[Manifest], namespace: str
) -> Iterator[Problem]:
    """Yield what the API server or the controller would reject, and fields that are unknown."""
    jobs: dict[tuple[str, str], Manifest] = {}
    admission = _admission()
    for manifest in manifests:
        if not manifest.obj.get("apiVersion"):
            yield _without_version(manifest)
            continue
        kind = job_kind(kinds, manifest.obj)
        if kind is None:
            if reason := unserved_reason(kinds, manifest.obj):
                yield Problem(manifest, ("kind",), reason)
            elif admission and (scaler := scaler_resource(kinds, manifest.obj)):
                found = _scaler_problems(manifest, namespace, admission, *scaler)
                yield from map(_with_placeholder, found)
            continue
        yield from map(_with_placeholder, _job_problems(kind, manifest, namespace, admission))
        metadata = as_new(manifest.obj, namespace)["metadata"]
        key = (str(metadata["namespace"]), str(metadata.get("name") or ""))
        first = jobs.setdefault(key, manifest)
        if key[1] and first is not manifest:
            in_ = f" in {first.place}" if first.place else ""
            message = f"metadata.name: {first.title}{in_} has it as well"
            yield Problem(manifest, ("metadata", "name"), f"{message}: give each job its own")


def _scaler_problems(
    manifest: Manifest, namespace: str, admission: "Admission", kind: Kind, resource: Resource
) -> Iterator[Problem]:
    yield from (wrong := list(_metadata_problems(manifest)))
    readable = (_with_name_alone(manifest) if wrong else None) or manifest
    named = _named(readable, namespace)
    yield from _namespace_problems(manifest, named["metadata"]["namespace"])
    yield from _problems(manifest, admission.rejections(kind, resource, named))


def _with_placeholder(problem: Problem) -> Problem:
    """Return the problem, with the fix of a name that stands for another one."""
    *above, name = problem.path or ("",)
    if above != ["metadata"] or name not in _NAMES:
        return problem
    value = (problem.manifest.obj.get("metadata") or {}).get(name)
    fix = placeholder_fix(value)
    return attrs.evolve(problem, message=f"metadata.{name}: is {value!r}{fix}") if fix else problem


def _without_version(manifest: Manifest) -> Problem:
    field = misspelt(manifest.obj, "apiVersion")
    if field is None:
        return Problem(manifest, (), "apiVersion: is missing")
    return Problem(manifest, field.path, f"{dotted(field.path)}: {field.message}")


def _admission() -> "Admission | None":
    # The controller's image lacks the packages of the embedded cluster; `dlctl render` works there.
    if not can_admit():
        return None
    from dlctl.cli.manifests.admission import Admission

    return Admission()


def can_admit() -> bool:
    """Return whether manifests are also checked as the API server would."""
    return all(importlib.util.find_spec(name) for name in ("cel_expr_python", "re2"))


def _problems(manifest: Manifest, rejections: Iterable["AdmissionRejection"]) -> Iterator[Problem]:
    for rejection in rejections:
        yield Problem(manifest, rejection.path, rejection.message)


def manifest_warnings(kind: Kind | None, manifest: Manifest, namespace: str) -> Iterator[str]:
    """Yield what a valid manifest has without effect, with its line; None for other objects."""
    yield from manifest.repeated_fields
    if kind is None:
        return
    obj = _decoded(kind, manifest, _named(manifest, namespace))
    for field in unknown_fields(manifest.obj, obj.dialect):
        place = f"line {manifest.place.line(field.path)}: " if manifest.place else ""
        yield f"{place}{dotted(field.path)} is ignored: {field.message}"


def print_warnings(kinds: Sequence[Kind], manifests: Iterable[Manifest], namespace: str) -> None:
    """Print the warnings about valid manifests to stderr."""
    for manifest in manifests:
        file = f"{manifest.place.file}, " if manifest.place else ""
        for warning in manifest_warnings(job_kind(kinds, manifest.obj), manifest, namespace):
            print(f"dlctl: {file}{warning}", file=sys.stderr)


def _named(manifest: Manifest, namespace: str) -> JSON:
    return with_example_name(as_new(manifest.obj, namespace))


def _decoded(kind: Kind, manifest: Manifest, named: JSON) -> DecodedObject:
    return _in_own_form(kind, manifest, kind.decode(as_job_object(kind, named)))


def chosen_version(kind: Kind, manifest: Manifest, namespace: str) -> str:
    """Return the version in whose form a job is read, if its apiVersion leaves that open."""
    try:
        return kind.decode(as_job_object(kind, _named(manifest, namespace))).chosen_version
    except ConfigError:
        return ""


def _job_problems(
    kind: Kind, manifest: Manifest, namespace: str, admission: "Admission | None"
) -> Iterator[Problem]:
    named = _named(manifest, namespace)
    try:
        obj = _decoded(kind, manifest, named)
    except ConfigError as error:
        found = list(_metadata_problems(manifest))
        yield from found or [Problem(manifest, ("metadata",), str(error))]
        if reduced := _with_name_alone(manifest):
            for problem in _job_problems(kind, reduced, namespace, admission):
                yield attrs.evolve(problem, manifest=manifest)
        return
    if obj.version_problem:
        yield Problem(manifest, ("apiVersion",), obj.version_problem)
        return
    yield from _annotation_problems(manifest, obj.metadata.annotations or {})
    yield from _namespace_problems(manifest, named["metadata"]["namespace"])
    unknown = list(unknown_fields(manifest.obj, obj.dialect))
    problems = list(_value_problems(kind, manifest, obj, admission, named))
    is_valid = not problems
    if is_valid and admission and not obj.invalid_reason:
        problems = list(_problems(manifest, admission.child_rejections(kind, named)))
    are_ignored = all(_is_ignored(kind, obj, field) for field in unknown)
    if not unknown or (are_ignored and not problems):
        yield from problems
        return
    if not is_valid:
        # The missing field may be the misspelt one, but wrong values are wrong in any case.
        wrong = admission.wrong_values(kind, named) if admission else ()
        problems = list(_problems(manifest, wrong))
    # If a field belongs to another version, the server also suggests a fix.
    explained = {problem.path for problem in problems}
    for field in unknown:
        if field.path not in explained:
            yield Problem(manifest, field.path, f"{dotted(field.path)}: {field.message}")
    yield from problems


def _is_ignored(kind: Kind, obj: DecodedObject, field: UnknownField) -> bool:
    """Return whether an unknown field has no effect, as under the operator of its version."""
    above, *below = field.path
    is_foreign = bool(below) and str(below[0]) in obj.dialect.foreign_fields
    # Older versions have the dialect of the stored one, which they are read as.
    written_as = kind.dialects[kind.resource.version]
    return written_as.ignores_unknown_fields and above == "spec" and not is_foreign


def _value_problems(
    kind: Kind, manifest: Manifest, obj: DecodedObject, admission: "Admission | None", named: JSON
) -> Iterator[Problem]:
    """Yield what is wrong with a job, whatever unknown fields it has."""
    if not obj.metadata.name:
        yield Problem(manifest, ("metadata",), "metadata.name: is missing: name the job")
        return
    found = _read_problem(kind, obj, manifest)
    if found is not None:
        yield found
    if admission is None or obj.invalid_reason:
        return
    rejections = admission.rejections(kind, kind.resource, named)
    yield from _problems(manifest, (each for each in rejections if not _repeats(each, found)))


def _in_own_form(kind: Kind, manifest: Manifest, obj: DecodedObject) -> DecodedObject:
    """Return the object in the form of its apiVersion, if its spec has the form of no version."""
    if any(each.matches(obj.spec) for each in kind.dialects.values()):
        return obj
    version = str(manifest.obj["apiVersion"]).rpartition("/")[2]
    return msgspec.structs.replace(obj, dialect=kind.dialects[version])


def _annotation_problems(manifest: Manifest, annotations: Mapping[str, str]) -> Iterator[Problem]:
    for name, reason in ignored_annotations(annotations):
        path = ("metadata", "annotations", name)
        yield Problem(manifest, path, f"metadata.annotations[{name}]: {reason}")


def _namespace_problems(manifest: Manifest, namespace: str) -> Iterator[Problem]:
    if dns_label(namespace):
        is_own = bool((manifest.obj.get("metadata") or {}).get("namespace"))
        title = "metadata.namespace: is " if is_own else "namespace "
        rule = "use lower-case letters, digits and '-', at most 63, and no '-' at an end"
        path = ("metadata", "namespace") if is_own else ()
        yield Problem(manifest, path, f"{title}{namespace!r}: {rule}")


def _with_name_alone(manifest: Manifest) -> Manifest | None:
    """Return the job with only the names and the unknown fields of its metadata; None if it is so.

    A name that is no text is replaced.
    """
    metadata = manifest.obj.get("metadata") or {}
    kept = {
        name: value
        for name, value in metadata.items()
        if (isinstance(value, str) if name in _NAMES else name not in pod_types()[_META].fields)
    }
    if kept == metadata:
        return None
    if any(metadata.get(name) for name in _OWN_NAMES) and kept.keys().isdisjoint(_OWN_NAMES):
        kept["name"] = "example"
    return attrs.evolve(manifest, obj={**manifest.obj, "metadata": kept})


def _metadata_problems(manifest: Manifest) -> Iterator[Problem]:
    """Yield which fields of the metadata have a value of the wrong type."""
    for name, value in (manifest.obj.get("metadata") or {}).items():
        parts = [{key: each} for key, each in value.items()] if isinstance(value, dict) else [value]
        for part in parts:
            try:
                canonicalize_pod_template({"metadata": {name: part}}, "")
            except InvalidJobError as error:
                field = error.field.removeprefix(".")
                yield Problem(manifest, parsed(field), str(error).removeprefix("."))


def _read_problem(kind: Kind, obj: DecodedObject, manifest: Manifest) -> Problem | None:
    """Return why the controller cannot read a job."""
    try:
        kind.read(obj)
    except InvalidJobError as error:
        return Problem(manifest, parsed(error.field), f"{error}")
    return None


def _repeats(rejection: "AdmissionRejection", found: Problem | None) -> bool:
    """Return whether a rejection is of the same field, or of one around it, as CEL rules are."""
    return found is not None and found.path[: len(rejection.path)] == rejection.path
