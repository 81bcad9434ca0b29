"""The life of namespaces: what a new one gets, what it refuses while it goes, how it empties.

Emptying is done in steps by whoever calls :func:`empty` until it is done; there is no task here.
"""

import attrs

from dlctl.api.meta import NAMESPACES, ObjectKey
from dlctl.local.apiserver import deletion, status
from dlctl.local.apiserver.objects import Objects
from dlctl.local.apiserver.request_options import DeleteOptions
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource
from dlctl.local.apiserver.stored_objects import JSON, StoredObject

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
    """Return a changed namespace; who may hold it back is said on creation and at the end."""
    name = {"kubernetes.io/metadata.name": new["metadata"]["name"]}
    meta = new["metadata"] | {"labels": (new["metadata"].get("labels") or {}) | name}
    return {**new, "metadata": meta, "spec": old.get("spec") or {}}


@attrs.frozen
class NamespaceLifecycle:
    """The rules that tie objects to their namespace."""

    objects: Objects
    registry: ResourceRegistry

    def check(self, served: ServedResource, obj: JSON) -> None:
        """Refuse a new object in a namespace that is not there or is going away."""
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
        """Give a namespace its default service account."""
        served = self.registry.find("", "v1", "serviceaccounts")
        if served and self.objects.storage.get(served.resource, ObjectKey(name, "default")) is None:
            self.objects.create(served, name, {"metadata": {"name": "default"}})

    def delete_contents(self, namespace: StoredObject) -> bool:
        """Delete what is left in a terminating namespace; when nothing is, let it go.

        Return whether it is gone. What waits for others (grace, finalizers) needs another call.
        """
        served_by_table = {
            (served.resource.group, served.resource.plural): served for served in self.registry
        }
        remaining = False
        for table, stored in list(self.objects.storage.in_namespace(namespace.key.name)):
            remaining = True
            if stored.meta.deletion_timestamp or table not in served_by_table:
                continue
            deletion.delete(
                self.objects,
                served_by_table[table],
                stored.key,
                DeleteOptions(propagation="Background"),
            )
        if not remaining or not any(self.objects.storage.in_namespace(namespace.key.name)):
            self._finalize(namespace.key)
            return True
        return False

    def _finalize(self, key: ObjectKey) -> None:
        stored = self.objects.storage.get(NAMESPACES, key)
        if stored is None:
            return
        obj = stored.decoded(NAMESPACES)
        obj["spec"] = {"finalizers": [f for f in obj["spec"]["finalizers"] if f != _FINALIZER]}
        stored = self.objects.storage.update(NAMESPACES, stored, obj)
        if not obj["spec"]["finalizers"] and not obj["metadata"].get("finalizers"):
            self.objects.storage.remove(NAMESPACES, stored)
