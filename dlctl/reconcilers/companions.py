"""What a job has beside pods and services: which objects to make, to change and to take away.

Pure. An object carries a digest of what was asked for when it was last written, so that what the
server or another controller adds to it is no difference.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.companions import Companion, CompanionObject
from dlctl.api.meta import Resource
from dlctl.reconcilers.diff import merge_patch

JSON = Mapping[str, Any]
APPLIED: Final = "dlctl.dev/applied"
# The names of the annotations that were asked for, so that they can be removed again.
ANNOTATED: Final = "dlctl.dev/annotated"
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})


@attrs.frozen
class CompanionChanges:
    """What to do about a job's companions; nothing if all is well."""

    made: tuple[Companion, ...] = ()
    # Each with what is there of it.
    patched: tuple[tuple[Companion, CompanionObject], ...] = ()
    deleted: tuple[tuple[Resource, CompanionObject], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.made or self.patched or self.deleted)


Found = Mapping[Resource, Sequence[CompanionObject]]


def changes(
    wanted: Iterable[Companion], found: Found, lasting: Collection[Resource] = ()
) -> CompanionChanges:
    """Compare what a job is to have with what there is of it.

    What is there of a ``lasting`` resource stays, wanted or not: it goes with the job.
    """
    there = {
        (resource, obj.metadata.name): obj for resource, objects in found.items() for obj in objects
    }
    made, patched = [], []
    for companion in wanted:
        obj = there.pop((companion.resource, companion.name), None)
        if obj is None:
            made.append(companion)
        elif not obj.metadata.terminating and applied(obj) != digest(companion.body):
            patched.append((companion, obj))
    deleted = [
        (resource, obj)
        for (resource, _), obj in there.items()
        if resource not in lasting and not obj.metadata.terminating
    ]
    return CompanionChanges(tuple(made), tuple(patched), tuple(deleted))


def digest(body: JSON) -> str:
    """Return what stands for the contents that were asked for."""
    contents = {name: value for name, value in body.items() if name not in _IDENTITY}
    if stated := _annotations(body):
        contents["metadata.annotations"] = stated
    encoded = msgspec.json.encode(contents, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def annotations(body: JSON) -> dict[str, str]:
    """Return the annotations that an object gets, with what says which they are."""
    stated = _annotations(body)
    named = {ANNOTATED: " ".join(sorted(stated))} if stated else {}
    return {**stated, **named, APPLIED: digest(body)}


def _annotations(body: JSON) -> Mapping[str, str]:
    return (body.get("metadata") or {}).get("annotations") or {}


def applied(obj: CompanionObject) -> str:
    return (obj.metadata.annotations or {}).get(APPLIED, "")


def amendment(companion: Companion, rendered: JSON, there: CompanionObject) -> JSON:
    """Return the merge patch that brings an object to what is asked for.

    What others have added to its spec stays, as does what is written but once.
    """
    old_annotations = there.metadata.annotations or {}
    ours = {*old_annotations.get(ANNOTATED, "").split(), ANNOTATED} & {*old_annotations}
    stated = _annotations(rendered)
    if removed := dict.fromkeys(sorted(ours - {*stated})):
        metadata = {**rendered["metadata"], "annotations": {**stated, **removed}}
        rendered = {**rendered, "metadata": metadata}
    spec, old = rendered.get("spec"), there.spec or {}
    if spec is None:
        return rendered
    wanted = {n: v for n, v in spec.items() if n not in companion.first_only or n not in old}
    known = {n: v for n, v in old.items() if n in wanted or n in companion.optional}
    return {**rendered, "spec": merge_patch(known, wanted)}
