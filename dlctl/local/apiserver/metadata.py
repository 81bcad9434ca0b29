"""The rules of ``metadata``, the same for every kind: shape, names, labels, owners, finalizers.

Pure functions that raise ``StatusError``; what the server itself fills in is not here.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import names, status
from dlctl.local.apiserver.changes import JSON
from dlctl.local.apiserver.status import Cause

_ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
# No vowels and nothing that looks like another, so that no words come out.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LENGTH: Final = 63
_LABEL_NAMES: Final = ("namespaces", "services")


class _OwnerReference(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Shape(msgspec.Struct, rename="camel"):
    """The types of the fields of metadata, for objects that come from outside."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_OwnerReference] | None = None
    finalizers: list[str] | None = None


def shaped(obj: JSON, resource: Resource) -> JSON:
    """Return the object with well-typed metadata without nulls, or refuse it."""
    meta = obj.get("metadata")
    try:
        msgspec.convert({} if meta is None else meta, _Shape)
    except msgspec.ValidationError as error:
        raise cannot_decode(resource, f"metadata: {error}") from None
    kept = {key: value for key, value in (meta or {}).items() if value is not None}
    # Field management comes with server-side apply, which is not served.
    kept.pop("managedFields", None)
    kept.pop("selfLink", None)
    return {**obj, "metadata": kept}


def cannot_decode(resource: Resource, problem: str) -> status.StatusError:
    kind = resource.kind
    message = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {problem}'
    return status.bad_request(message)


def generated_name(prefix: str) -> str:
    """Return a name that begins with the prefix; it may be taken."""
    suffix = "".join(random.choices(_SUFFIX_ALPHABET, k=5))
    return prefix[: _GENERATED_LENGTH - len(suffix)] + suffix


def check(obj: JSON, resource: Resource) -> None:
    """Refuse an object whose metadata breaks a rule."""
    meta = obj["metadata"]
    causes = [
        *_name_causes(meta.get("name", ""), resource),
        *_label_causes(meta.get("labels") or {}),
        *_annotation_causes(meta.get("annotations") or {}),
        *_owner_causes(meta.get("ownerReferences") or []),
        *_finalizer_causes(meta.get("finalizers") or []),
    ]
    if causes:
        raise status.invalid(resource, meta.get("name", ""), causes)


def check_update(old: JSON, new: JSON, resource: Resource) -> None:
    """Refuse an update that changes what may not change."""
    before, after = old["metadata"], new["metadata"]
    causes = []
    if after.get("uid") != before["uid"]:
        causes.append(Cause.invalid("metadata.uid", after.get("uid"), "field is immutable"))
    if before.get("deletionTimestamp"):
        extra = sorted({*after.get("finalizers", ())} - {*before.get("finalizers", ())})
        if extra:
            shown = ", ".join(f'"{name}"' for name in extra)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            causes.append(Cause.forbidden("metadata.finalizers", detail))
    if causes:
        raise status.invalid(resource, before["name"], causes)


def _name_causes(name: str, resource: Resource) -> Iterator[Cause]:
    field = "metadata.name"
    if not name:
        yield Cause.required(field, "name or generateName is required")
        return
    rule = names.dns_subdomain
    if resource.group == "rbac.authorization.k8s.io":
        rule = names.path_segment
    elif resource.qualified in _LABEL_NAMES:
        rule = names.dns_label
    for complaint in rule(name):
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
    for index, reference in enumerate(references):
        if not reference.get("apiVersion"):
            yield Cause.invalid(f"{field}[{index}].apiVersion", "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                yield Cause.invalid(f"{field}[{index}].{name}", "", "must not be empty")
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    for other in controllers[1:]:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {other}"
        )
        yield Cause.invalid(field, references, detail)


def _finalizer_causes(finalizers: list[str]) -> Iterator[Cause]:
    field = "metadata.finalizers"
    for finalizer in finalizers:
        yield from _key_causes(field, finalizer)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield Cause.invalid(field, finalizers, detail)
