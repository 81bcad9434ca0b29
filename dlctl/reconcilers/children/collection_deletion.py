"""Whether one request can delete many children of a job at once. Pure.

Such a request names no UIDs: the server deletes whatever its selectors find at a resource version.
It is right only where the store of that version shows that they find nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, UID, Object, ObjectMeta, Resource
from dlctl.informers.store import Store
from dlctl.kube.queries import ListOptions

T = TypeVar("T", bound=Object)

# For fewer children, single deletions are as cheap, and each is guarded by a UID.
MIN_COUNT: Final = 8
# The server deletes one after another: more could take longer than a request may.
MAX_COUNT: Final = 1024
# A restart waits for its deletions, of which many single ones are done at the same time.
MAX_COUNT_OF_RESTART: Final = 100
# The server and this controller examine other objects too: this many cost less than a deletion.
MAX_EXAMINED_PER_CHILD: Final = 500
# Children that stay are listed in the URL.
MAX_KEPT: Final = 16
# So are the labels of the children, which come from the user's template as well.
MAX_LABELS: Final = 64


@attrs.frozen
class CollectionDeletion:
    """Children to delete by one request, and the options that find them and no others."""

    resource: Resource
    children: tuple[Object, ...]
    options: ListOptions


def collection_deletion(
    owner: UID,
    resource: Resource,
    children: Sequence[T],
    store: Store[T],
    *,
    max_count: int = MAX_COUNT,
) -> CollectionDeletion | None:
    """Return the deletion of an owner's children as a collection; None if single ones are right.

    The store has all objects with dlctl's label, and at least those from which they were chosen.
    """
    count = len(children)
    if not MIN_COUNT <= count <= max_count or len(store) > MAX_EXAMINED_PER_CHILD * count:
        return None
    if len(children[0].metadata.labels or ()) > MAX_LABELS:
        return None
    labels, namespace = _shared_labels(children), children[0].metadata.namespace or ""
    if labels.get(MANAGED_BY_LABEL) != MANAGED_BY:
        # Objects without the label are not in the store.
        return None
    others = list(_others_with(labels, namespace, children, store))
    if any(other.controller_uid != owner for other in others):
        return None
    # To delete children once more that are already terminating changes nothing.
    kept = [other.name for other in others if not other.is_terminating]
    if len(kept) > MAX_KEPT:
        return None
    return CollectionDeletion(
        resource,
        tuple(children),
        ListOptions(
            namespace=namespace,
            label_selector=",".join(f"{name}={value}" for name, value in sorted(labels.items())),
            field_selector=",".join(f"metadata.name!={name}" for name in sorted(kept)),
            resource_version=store.resource_version,
            resource_version_match="Exact",
        ),
    )


def _others_with(
    labels: Mapping[str, str], namespace: str, children: Iterable[Object], store: Store[T]
) -> Iterator[ObjectMeta]:
    """Yield the metadata of further objects that a selector of these labels finds."""
    known = {child.metadata.uid for child in children}
    for obj in store:
        found = obj.metadata
        # Cheap first: most objects are of other namespaces.
        if found.namespace != namespace or found.uid in known:
            continue
        if labels.items() <= (found.labels or {}).items():
            yield found


def _shared_labels(children: Iterable[Object]) -> dict[str, str]:
    """Return the labels that all children have: the narrowest selector of all of them."""
    first, *others = [child.metadata.labels or {} for child in children]
    return {n: v for n, v in first.items() if all(labels.get(n) == v for labels in others)}
