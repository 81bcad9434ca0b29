"""Changes to a job's dependents: which objects to create, patch and delete.

Pure. Each object carries a hash of its last applied contents, so that additions by the server or by
other controllers do not count as differences.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs
import msgspec

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import Resource
from dlctl.api.objects.dependents import (
    APPLIED_ANNOTATIONS,
    APPLIED_HASH,
    Dependent,
    DependentObject,
)
from dlctl.kube.merge_diff import merge_diff

_UNHASHED_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


@attrs.frozen
class DependentChanges:
    """The changes to a job's dependents; empty if they are up to date."""

    created: tuple[Dependent, ...] = ()
    # Each with the existing object.
    patched: tuple[tuple[Dependent, DependentObject], ...] = ()
    deleted: tuple[tuple[Resource, DependentObject], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.patched or self.deleted)


ExistingDependents = Mapping[Resource, Sequence[DependentObject]]


def diff_dependents(
    wanted: Iterable[Dependent], existing: ExistingDependents, retained: Collection[Resource] = ()
) -> DependentChanges:
    """Compare a job's wanted dependents with the existing ones.

    Existing objects of a ``retained`` resource are never deleted: they are deleted with the job.
    """
    unmatched = {
        (resource, obj.metadata.name): obj
        for resource, objects in existing.items()
        for obj in objects
    }
    created, patched = [], []
    for dependent in wanted:
        obj = unmatched.pop((dependent.resource, dependent.name), None)
        if obj is None:
            created.append(dependent)
        elif not obj.metadata.is_terminating and applied_hash(obj) != content_hash(dependent.body):
            patched.append((dependent, obj))
    deleted = [
        (resource, obj)
        for (resource, _), obj in unmatched.items()
        if resource not in retained and not obj.metadata.is_terminating
    ]
    return DependentChanges(tuple(created), tuple(patched), tuple(deleted))


def content_hash(body: ReadOnlyJSON) -> str:
    """Return the hash of the wanted contents."""
    contents = {name: value for name, value in body.items() if name not in _UNHASHED_FIELDS}
    if own := _annotations(body):
        contents["metadata.annotations"] = own
    encoded = msgspec.json.encode(contents, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def hash_annotations(body: ReadOnlyJSON) -> dict[str, str]:
    """Return the annotations of an object, including the hash and the list of their names."""
    own = _annotations(body)
    named = {APPLIED_ANNOTATIONS: " ".join(sorted(own))} if own else {}
    return {**own, **named, APPLIED_HASH: content_hash(body)}


def _annotations(body: ReadOnlyJSON) -> Mapping[str, str]:
    return (body.get("metadata") or {}).get("annotations") or {}


def applied_hash(obj: DependentObject) -> str:
    return obj.metadata.annotation(APPLIED_HASH)


def update_patch(
    dependent: Dependent, rendered: ReadOnlyJSON, existing: DependentObject
) -> ReadOnlyJSON:
    """Return the merge patch that updates an object to the wanted contents.

    Other writers' additions to its spec and its create-only fields are kept.
    """
    listed = existing.metadata.annotation(APPLIED_ANNOTATIONS)
    applied_names = {*listed.split(), APPLIED_ANNOTATIONS} if listed else set()
    own = _annotations(rendered)
    if removed := dict.fromkeys(sorted(applied_names - {*own})):
        metadata = {**rendered["metadata"], "annotations": {**own, **removed}}
        rendered = {**rendered, "metadata": metadata}
    spec = rendered.get("spec")
    if spec is None:
        return rendered
    old = existing.decoded_spec()
    wanted = {
        n: v for n, v in spec.items() if n not in dependent.create_only_fields or n not in old
    }
    known = {n: v for n, v in old.items() if n in wanted or n in dependent.optional_fields}
    return {**rendered, "spec": merge_diff(known, wanted)}
