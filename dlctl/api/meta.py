"""Metadata common to all Kubernetes objects: resource, key, identity and owner.

The structs are projections: they keep what the controller reads and drop the rest of the object, so
they must never be written back.
"""

import datetime
import enum
from collections.abc import Collection, Mapping, Sized
from typing import ClassVar, Final, NamedTuple, NewType, Self
from urllib.parse import quote

import attrs
import msgspec

from dlctl.api.interning import Interner, with_parts

UID = NewType("UID", str)

# Not app.kubernetes.io/managed-by, which pod templates carry for the tool that renders them.
MANAGED_BY_LABEL = "dlctl.dev/managed-by"
MANAGED_BY = "dlctl"
# kubectl's copy of the whole object, which nobody but kubectl reads.
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
# Watches use it as their scope, so that other pods cost nothing.
MANAGED_BY_SELECTOR = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
# The server adds it to the time as int64 nanoseconds, which wrap round.
_MAX_GRACE_S: Final = 2**63 // 10**9
# Of the labels of an object, or of another part of it that is kept in memory, where each item takes
# many times its text. Nodes have some hundred labels.
MAX_ITEMS: Final = 1000
# Of an annotation of dlctl's.
_MAX_KEPT_CHARS: Final = 4096


class ObjectKey(NamedTuple):
    """Namespace and name of an object; a key outlives its object, so it is not an identity.

    An object deleted and created again under the same name has the same key and a new UID. The
    namespace of a cluster-scoped object is the empty string. A tuple, for its fast hash: stores and
    queues spend most of their time on hashing.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@attrs.frozen
class Resource:
    """The plural endpoint of the objects of one kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """Return the name as spelled by kubectl and metrics: ``mxjobs.kubeflow.org``, ``pods``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path; without a namespace, of the collection across all namespaces.

        The name may be text of a tenant, such as ``../x?watch=true``: no text names another object.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, _segment(name), subresource) if part]
        return "/" + "/".join(parts)


def _segment(name: str) -> str:
    if "/" in name or name in (".", ".."):
        # Servers split the path after decoding it. Quoted twice, it is a name that no object has.
        name = quote(name, safe="").replace(".", "%2E")
    return quote(name, safe=":")


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
BATCH_JOBS = Resource("batch", "v1", "jobs", "Job")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)


class WatchEventType(enum.StrEnum):
    """The type of a watch event: the change of its object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Projection(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A frozen view of wire data; unknown fields are dropped, absent and null ones are None."""


def check_counts(**parts: Sized | None) -> None:
    """Raise ValueError, which makes an object malformed, if a part has more items than are kept."""
    for name, part in parts.items():
        if part is not None and len(part) > MAX_ITEMS:
            raise ValueError(f"has {len(part)} {name}: use at most {MAX_ITEMS}")


def check_bytes(limit: int, **parts: object) -> None:
    """Raise ValueError, as :func:`check_counts` does, if the parts together have more JSON."""
    size = len(msgspec.json.encode(list(parts.values())))
    if size > limit:
        raise ValueError(f"has {size} bytes of {', '.join(parts)}: use at most {limit}")


class OwnerReference(Projection, frozen=True, gc=False):
    """An owner of an object; at most one of its references has ``controller`` set."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: UID = UID("")
    controller: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class ObjectMeta(Projection, frozen=True, gc=False):
    """The identity, version and labels of an object."""

    name: str = ""
    namespace: str | None = None
    uid: UID = UID("")
    resource_version: str = ""
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    creation_timestamp: datetime.datetime | None = None
    deletion_timestamp: datetime.datetime | None = None
    deletion_grace_period_seconds: int | None = None

    def __post_init__(self) -> None:
        check_counts(
            labels=self.labels,
            annotations=self.annotations,
            ownerReferences=self.owner_references,
            finalizers=self.finalizers,
        )

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace or "", self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that controls the object, if any."""
        return next((ref for ref in self.owner_references or () if ref.controller), None)

    @property
    def controller_uid(self) -> UID | None:
        """Return the UID of :attr:`controller`."""
        controller = self.controller
        return None if controller is None else controller.uid

    @property
    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def deletion_requested_at(self) -> datetime.datetime | None:
        """Return when the deletion was requested; the deletion timestamp is this plus the grace.

        The server takes any period, but of one that is too long it makes a wrong timestamp: then
        it is the object's creation, which is all that is known.
        """
        if self.deletion_timestamp is None:
            return None
        seconds = self.deletion_grace_period_seconds or 0
        if seconds > _MAX_GRACE_S:
            return self.creation_timestamp or self.deletion_timestamp
        return self.deletion_timestamp - datetime.timedelta(seconds=seconds)

    def label(self, name: str) -> str | None:
        return (self.labels or {}).get(name)

    def annotation(self, name: str, default: str = "") -> str:
        return (self.annotations or {}).get(name, default)

    def for_store(self, interner: Interner, annotations: Collection[str] | None = None) -> Self:
        """Return a value that shares its parts with others of the interner.

        Of its annotations it has only those with these names, and none that are long; with None,
        all of them.
        """
        kept = self.annotations
        if kept and annotations is not None:
            named = {name: kept[name] for name in annotations if name in kept}
            kept = {name: text for name, text in named.items() if len(text) <= _MAX_KEPT_CHARS}
        return with_parts(
            self,
            namespace=interner.text(self.namespace),
            labels=interner.texts(self.labels),
            annotations=interner.texts(kept),
            owner_references=interner.part(self.owner_references),
            creation_timestamp=interner.part(self.creation_timestamp),
        )


class Object(Projection, frozen=True, gc=False):
    """Any object, reduced to its metadata."""

    # The annotations that stores keep; None for all. One may have 256 KiB, and each pod a copy.
    kept_annotations: ClassVar[Collection[str] | None] = None

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> ObjectKey:
        return self.metadata.key

    def for_store(self, interner: Interner) -> Self:
        """Return what stores keep of the object; it shares its parts with others."""
        metadata = self.metadata.for_store(interner, self.kept_annotations)
        return with_parts(self, metadata=metadata)


def owner_reference(resource: Resource, *, name: str, uid: UID) -> Mapping[str, object]:
    """Return a child's reference to its controller, in wire format."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
