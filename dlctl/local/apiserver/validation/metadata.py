"""Validation of ``metadata``, the same for every kind: names, labels, owners, finalizers.

Pure functions that raise ``StatusError``; the server sets its own fields elsewhere.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dlctl.api.meta import Resource
from dlctl.local.apiserver.resources import JSON
from dlctl.local.apiserver.status import Cause
from dlctl.local.apiserver.validation import names

_ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
# No vowels and no characters that look alike, so that no words come out.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LENGTH: Final = 63
_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_LABEL_NAMES: Final = ("namespaces", "services")


def generated_name(prefix: str) -> str:
    """Return a name that begins with the prefix; it may be taken."""
    suffix = "".join(random.choices(_SUFFIX_ALPHABET, k=5))
    return prefix[: _GENERATED_LENGTH - len(suffix)] + suffix


def causes(obj: JSON, resource: Resource) -> list[Cause]:
    """Return the errors of an object's metadata."""
    meta = obj["metadata"]
    return [
        *_generate_name_causes(meta.get("generateName", ""), resource),
        *_name_causes(meta.get("name", ""), resource),
        *_label_causes(meta.get("labels") or {}),
        *_annotation_causes(meta.get("annotations") or {}),
        *_owner_causes(meta.get("ownerReferences") or []),
        *_finalizer_causes(meta.get("finalizers") or [], resource),
    ]


def update_causes(old: JSON, sent: JSON) -> list[Cause]:
    """Return the changes to metadata that are not allowed."""
    before, after = old["metadata"], sent["metadata"]
    found = []
    for name in ("uid", "deletionTimestamp"):
        value = after.get(name)
        if value and value != before.get(name):
            found.append(Cause.invalid(f"metadata.{name}", value, "field is immutable"))
    if before.get("deletionTimestamp"):
        extra = sorted({*after.get("finalizers", ())} - {*before.get("finalizers", ())})
        if extra:
            shown = ", ".join(f'"{name}"' for name in extra)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            found.append(Cause.forbidden("metadata.finalizers", detail))
    return found


def _rule(resource: Resource) -> names.Check:
    if resource.group == "rbac.authorization.k8s.io":
        return names.path_segment
    return names.dns_label if resource.group_resource in _LABEL_NAMES else names.dns_subdomain


def _generate_name_causes(prefix: str, resource: Resource) -> Iterator[Cause]:
    # The generated suffix follows the dash.
    checked = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
    for complaint in _rule(resource)(checked) if prefix else ():
        yield Cause.invalid("metadata.generateName", prefix, complaint)


def _name_causes(name: str, resource: Resource) -> Iterator[Cause]:
    field = "metadata.name"
    if not name:
        yield Cause.required(field, "name or generateName is required")
        return
    for complaint in _rule(resource)(name):
        yield Cause.invalid(field, name, complaint)


def _label_causes(labels: Mapping[str, str]) -> Iterator[Cause]:
    field = "metadata.labels"
    for key, value in labels.items():
        yield from _key_causes(field, key)
        for complaint in names.label_value(value):
            yield Cause.invalid(field, value, complaint)


def _key_causes(field: str, key: str) -> Iterator[Cause]:
    for complaint in names.qualified_name(key):
        yield Cause.invalid(field, key, complaint)


def _annotation_causes(annotations: Mapping[str, str]) -> Iterator[Cause]:
    field = "metadata.annotations"
    for key in annotations:
        yield from _key_causes(field, key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT_BYTES:
        yield Cause.too_long(field, _ANNOTATIONS_LIMIT_BYTES)


def _owner_causes(references: list[Mapping[str, Any]]) -> Iterator[Cause]:
    field = "metadata.ownerReferences"
    controllers = []
    for reference in references:
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        if not version or "/" in group:
            shown = reference.get("apiVersion", "")
            yield Cause.invalid(f"{field}.apiVersion", shown, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                yield Cause.invalid(f"{field}.{name}", "", "must not be empty")
        if (group, version, reference.get("kind")) == ("", "v1", "Event"):
            detail = "/v1, Kind=Event is disallowed from being an owner"
            yield Cause.invalid(field, reference, detail)
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    for other in controllers[1:]:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {other}"
        )
        yield Cause.invalid(field, references, detail)


def _finalizer_causes(finalizers: list[str], resource: Resource) -> Iterator[Cause]:
    field = "metadata.finalizers"
    for index, finalizer in enumerate(finalizers):
        yield from _key_causes(field, finalizer)
        # Only the types of the core group know which short names exist.
        if not resource.group and "/" not in finalizer and finalizer not in _FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield Cause.invalid(f"{field}[{index}]", finalizer, detail)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield Cause.invalid(field, finalizers, detail)
