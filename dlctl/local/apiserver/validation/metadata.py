"""Validation of ``metadata``, the same for every kind: names, labels, owners, finalizers.

Pure functions that return the errors; the server sets its own fields elsewhere.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.validation import names

_ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_LABEL_NAMES: Final = ("namespaces", "services")


def errors(obj: JSON, resource: Resource) -> list[FieldError]:
    """Return the errors of an object's metadata."""
    meta = obj["metadata"]
    return [
        *_generate_name_errors(meta.get("generateName", ""), resource),
        *_name_errors(meta.get("name", ""), resource),
        *_label_errors(meta.get("labels") or {}, "metadata.labels"),
        *_annotation_errors(meta.get("annotations") or {}, "metadata.annotations"),
        *_owner_errors(meta.get("ownerReferences") or []),
        *_finalizer_errors(meta.get("finalizers") or [], resource),
    ]


def update_errors(old: JSON, sent: JSON) -> list[FieldError]:
    """Return the changes to metadata that are not allowed."""
    before, after = old["metadata"], sent["metadata"]
    found = []
    for name in ("uid", "deletionTimestamp"):
        value = after.get(name)
        if value and value != before.get(name):
            found.append(FieldError.invalid(f"metadata.{name}", value, "field is immutable"))
    if before.get("deletionTimestamp"):
        extra = sorted({*after.get("finalizers", ())} - {*before.get("finalizers", ())})
        if extra:
            shown = ", ".join(f'"{name}"' for name in extra)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            found.append(FieldError.forbidden("metadata.finalizers", detail))
    return found


def _rule(resource: Resource) -> names.NameValidator:
    if resource.group == "rbac.authorization.k8s.io":
        return names.path_segment
    return names.dns_label if resource.group_resource in _LABEL_NAMES else names.dns_subdomain


def _generate_name_errors(prefix: str, resource: Resource) -> Iterator[FieldError]:
    # The generated suffix follows the dash.
    checked = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
    for complaint in _rule(resource)(checked) if prefix else ():
        yield FieldError.invalid("metadata.generateName", prefix, complaint)


def _name_errors(name: str, resource: Resource) -> Iterator[FieldError]:
    field = "metadata.name"
    if not name:
        yield FieldError.required(field, "name or generateName is required")
        return
    for complaint in _rule(resource)(name):
        yield FieldError.invalid(field, name, complaint)


def template_metadata_errors(meta: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of the metadata of a pod template; the paths omit ``metadata``."""
    yield from _label_errors(meta.get("labels") or {}, "spec.template.labels")
    yield from _annotation_errors(meta.get("annotations") or {}, "spec.template.annotations")


def _label_errors(labels: Mapping[str, str], field: str) -> Iterator[FieldError]:
    for key, value in labels.items():
        yield from _key_errors(field, key)
        for complaint in names.label_value(value):
            yield FieldError.invalid(field, value, complaint)


def _key_errors(field: str, key: str) -> Iterator[FieldError]:
    for complaint in names.qualified_name(key):
        yield FieldError.invalid(field, key, complaint)


def _annotation_errors(annotations: Mapping[str, str], field: str) -> Iterator[FieldError]:
    for key in annotations:
        yield from _key_errors(field, key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT_BYTES:
        yield FieldError.too_long(field, _ANNOTATIONS_LIMIT_BYTES)


def _owner_errors(references: list[Mapping[str, Any]]) -> Iterator[FieldError]:
    field = "metadata.ownerReferences"
    controllers = []
    for reference in references:
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        if not version or "/" in group:
            shown = reference.get("apiVersion", "")
            yield FieldError.invalid(f"{field}.apiVersion", shown, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                yield FieldError.invalid(f"{field}.{name}", "", "must not be empty")
        if (group, version, reference.get("kind")) == ("", "v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            yield FieldError.invalid(field, reference, detail)
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    for other in controllers[1:]:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {other}"
        )
        yield FieldError.invalid(field, references, detail)


def _finalizer_errors(finalizers: list[str], resource: Resource) -> Iterator[FieldError]:
    field = "metadata.finalizers"
    for index, finalizer in enumerate(finalizers):
        yield from _key_errors(field, finalizer)
        # Only the types of the core group know which short names exist.
        if not resource.group and "/" not in finalizer and finalizer not in _FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldError.invalid(f"{field}[{index}]", finalizer, detail)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield FieldError.invalid(field, finalizers, detail)
