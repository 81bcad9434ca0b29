"""Deletion of objects: preconditions, grace period, finalizers and propagation policy.

Synchronous like ``objects``. Dependents and contents of namespaces are deleted later, by
``garbage_collector`` and ``namespaces``.
"""

import datetime

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey
from dlctl.clock import timestamp
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.request_options import DeleteRequestOptions
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.stored_objects import StoredObject

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
# Exist in every cluster and may not be deleted.
PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")


@attrs.frozen
class Deleted:
    """The result of a deletion: the object as last seen, and whether it is ``gone``."""

    stored: StoredObject
    gone: bool


def delete(
    objects: Objects, served: ServedResource, key: ObjectKey, options: DeleteRequestOptions
) -> Deleted:
    """Delete an object, or mark it: finalizers, grace or a namespace's contents may remain."""
    stored = objects.get(served, key)
    _check_preconditions(served, stored, options)
    if served.resource.group_resource == "namespaces":
        return _delete_namespace(objects, served, stored, options)
    obj = stored.decoded(served.resource)
    meta = obj["metadata"]
    now = objects.clock.now()
    if served.graceful:
        if _is_pending(meta, options):
            return Deleted(stored, gone=False)
        graceful = _set_grace(obj, options, now)
    else:
        graceful = None
    meta["finalizers"] = _finalizers(
        meta.get("finalizers", []), _propagation(served, options, meta)
    )
    if meta["finalizers"] and graceful is None:
        _mark(meta, now, 0)
    if not meta["finalizers"]:
        del meta["finalizers"]
    waits = bool(meta.get("finalizers")) or bool(graceful)
    if options.dry_run:
        return Deleted(StoredObject.of(obj, stored.revision), gone=not waits)
    if waits or graceful is not None:
        stored = objects.storage.update(served.resource, stored, obj)
    if waits:
        return Deleted(stored, gone=False)
    return Deleted(objects.storage.remove(served.resource, stored), gone=True)


def _check_preconditions(
    served: ServedResource, stored: StoredObject, options: DeleteRequestOptions
) -> None:
    # The real server names the kind here instead of the resource.
    kind = attrs.evolve(served.resource, plural=served.resource.kind)
    if options.uid is not None and options.uid != stored.uid:
        message = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({stored.uid}). The object might have been deleted and then recreated"
        )
        raise status.conflict(kind, stored.key.name, message)
    wanted = options.resource_version
    if wanted is not None and wanted != str(stored.revision):
        message = (
            f"the ResourceVersion in the precondition ({wanted}) does not match the "
            f"ResourceVersion in record ({stored.revision}). The object might have been modified"
        )
        raise status.conflict(kind, stored.key.name, message)


def _is_pending(meta: JSON, options: DeleteRequestOptions) -> bool:
    """Return whether the object is already being deleted, and not sooner by this request."""
    grace = meta.get("deletionGracePeriodSeconds")
    if not meta.get("deletionTimestamp") or not grace:
        return False
    return options.grace_period_s is None or _positive(options.grace_period_s) >= int(grace)


def _positive(grace_s: int) -> int:
    # The real server treats a negative period as one second.
    return 1 if grace_s < 0 else grace_s


def _set_grace(obj: JSON, options: DeleteRequestOptions, now: datetime.datetime) -> int | None:
    """Set and return the grace period in seconds; None if there is no time left."""
    meta = obj["metadata"]
    if meta.get("deletionTimestamp"):
        if not meta.get("deletionGracePeriodSeconds"):
            return None
        return _shorten(meta, options, now)
    spec, phase = obj.get("spec") or {}, (obj.get("status") or {}).get("phase")
    grace_s = options.grace_period_s
    if grace_s is None:
        grace_s = spec.get("terminationGracePeriodSeconds", 30)
    # Not running: nothing to wait for.
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        grace_s = 0
    grace_s = _positive(grace_s)
    _mark(meta, now + datetime.timedelta(seconds=grace_s), grace_s)
    return grace_s


def _shorten(meta: JSON, options: DeleteRequestOptions, now: datetime.datetime) -> int:
    assert options.grace_period_s is not None
    grace_s = _positive(options.grace_period_s)
    until = datetime.datetime.fromisoformat(meta["deletionTimestamp"])
    saved_s = int(meta["deletionGracePeriodSeconds"]) - grace_s
    earlier = until - datetime.timedelta(seconds=saved_s)
    if earlier < now:
        earlier, grace_s = now, min(grace_s, 1)
    meta["deletionTimestamp"] = timestamp(earlier)
    meta["deletionGracePeriodSeconds"] = grace_s
    return grace_s


def _mark(meta: JSON, until: datetime.datetime, grace_s: int) -> None:
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = timestamp(until)
        if "generation" in meta:
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace_s


def _propagation(served: ServedResource, options: DeleteRequestOptions, meta: JSON) -> str | None:
    """Return the policy of a deletion: the requested one, or else the default of the resource."""
    if options.propagation is None and resource_traits.orphans_by_default(served.resource):
        chosen = {ORPHAN, FOREGROUND} & {*meta.get("finalizers", ())}
        return None if chosen else "Orphan"
    return options.propagation


def _finalizers(finalizers: list[str], propagation: str | None) -> list[str]:
    """Return the finalizers for the policy; without a policy they stay as they are."""
    if propagation is None:
        return list(finalizers)
    kept = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    if propagation == "Orphan":
        kept.append(ORPHAN)
    elif propagation == "Foreground":
        kept.append(FOREGROUND)
    return kept


def _delete_namespace(
    objects: Objects, served: ServedResource, stored: StoredObject, options: DeleteRequestOptions
) -> Deleted:
    if stored.key.name in PROTECTED_NAMESPACES:
        raise status.forbidden(
            served.resource, stored.key.name, "this namespace may not be deleted"
        )
    obj = stored.decoded(served.resource)
    _mark(obj["metadata"], objects.clock.now(), 0)
    obj["metadata"].pop("deletionGracePeriodSeconds")
    obj["status"] = (obj.get("status") or {}) | {"phase": "Terminating"}
    if options.dry_run:
        return Deleted(StoredObject.of(obj, stored.revision), gone=False)
    if obj["metadata"].get("finalizers") or (obj.get("spec") or {}).get("finalizers"):
        return Deleted(objects.storage.update(served.resource, stored, obj), gone=False)
    return Deleted(objects.storage.remove(served.resource, stored), gone=True)


def delete_response(served: ServedResource, deleted: Deleted) -> bytes:
    """Return the response to a DELETE: the object while it exists, else perhaps a success."""
    if not deleted.gone or resource_traits.returns_deleted_object(served.resource):
        return deleted.stored.encoded(served.resource)
    success = status.success(served.resource, deleted.stored.key.name, deleted.stored.uid)
    return msgspec.json.encode(success)
