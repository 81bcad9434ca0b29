"""Lifecycle of namespaces: their defaults, rejected writes during termination, emptying.

The caller repeats :meth:`NamespaceLifecycle.delete_contents` until it is done; there is no task
here.
"""

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, ObjectKey
from dlctl.local.apiserver import status
from dlctl.local.apiserver.request_options import DeleteRequestOptions
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.storage import deletion
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_FINALIZER = "kubernetes"


def prepare_for_create(namespace: JSON) -> JSON:
    """Return a new namespace as it is stored."""
    meta = namespace["metadata"]
    labels = (meta.get("labels") or {}) | {"kubernetes.io/metadata.name": meta["name"]}
    spec = dict(namespace.get("spec") or {})
    if _FINALIZER not in spec.get("finalizers", ()):
        spec["finalizers"] = [*spec.get("finalizers", ()), _FINALIZER]
    return {
        **namespace,
        "metadata": meta | {"labels": labels},
        "spec": spec,
        "status": {"phase": "Active"},
    }


def prepare_for_update(old: JSON, new: JSON) -> JSON:
    """Return an updated namespace; its finalizers change only on creation and at the end."""
    name = {"kubernetes.io/metadata.name": new["metadata"]["name"]}
    meta = new["metadata"] | {"labels": (new["metadata"].get("labels") or {}) | name}
    return {**new, "metadata": meta, "spec": old.get("spec") or {}}


@attrs.frozen
class NamespaceLifecycle:
    """The rules that tie objects to their namespace."""

    objects: Objects
    registry: ResourceRegistry

    def check(self, served: ServedResource, obj: JSON) -> None:
        """Reject a new object in a namespace that is missing or terminating."""
        resource, meta = served.resource, obj["metadata"]
        if not resource.namespaced:
            return
        name = meta["namespace"]
        namespace = self.objects.storage.get(NAMESPACES, ObjectKey("", name))
        if namespace is None:
            raise status.not_found(NAMESPACES, name)
        if namespace.meta.deletion_timestamp:
            message = (
                f"unable to create new content in namespace {name} because it is being terminated"
            )
            error = status.forbidden(resource, meta.get("name", ""), message)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = (error.details or {}) | {"causes": [cause]}
            raise error

    def create_default_account(self, name: str) -> None:
        """Create the default service account of a namespace."""
        served = self.registry.find("", "v1", "serviceaccounts")
        if served and self.objects.storage.get(served.resource, ObjectKey(name, "default")) is None:
            self.objects.create(served, name, {"metadata": {"name": "default"}})

    def delete_contents(self, namespace: StoredObject) -> None:
        """Delete the contents of a terminating namespace; once it is empty, finalize it.

        Objects that wait (grace period, finalizers) need another call.
        """
        served_by_table = {
            (served.resource.group, served.resource.plural): served for served in self.registry
        }
        for table, stored in list(self.objects.storage.all_objects(namespace.key.name)):
            if stored.meta.deletion_timestamp or table not in served_by_table:
                continue
            deletion.delete(
                self.objects,
                served_by_table[table],
                stored.key,
                DeleteRequestOptions(propagation="Background"),
            )
        if not any(self.objects.storage.all_objects(namespace.key.name)):
            self._finalize(namespace.key)

    def _finalize(self, key: ObjectKey) -> None:
        stored = self.objects.storage.get(NAMESPACES, key)
        if stored is None:
            return
        obj = stored.decoded(NAMESPACES)
        obj["spec"] = {"finalizers": [f for f in obj["spec"]["finalizers"] if f != _FINALIZER]}
        stored = self.objects.storage.update(NAMESPACES, stored, obj)
        if not obj["spec"]["finalizers"] and not obj["metadata"].get("finalizers"):
            self.objects.storage.remove(NAMESPACES, stored)
