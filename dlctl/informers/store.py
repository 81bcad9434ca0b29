"""Objects by key, with exact indexes by owner and by functions of the caller.

Contains only objects sent by the server, so it may lag behind the server and our own writes.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Self, TypeVar

from dlctl.api.meta import UID, Object, ObjectKey

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

_OWNER: Final = "owner"


class Index(Generic[T]):
    """Objects by the values that a function extracts; a value without objects is removed.

    An object on which the function fails has no values.
    """

    def __init__(self, values: Callable[[T], Iterable[str]]) -> None:
        self.values = values
        self._objects_by_value: dict[str, dict[ObjectKey, T]] = {}

    def __getitem__(self, value: str) -> list[T]:
        return list(self._objects_by_value.get(value, {}).values())

    def __iter__(self) -> Iterator[str]:
        """Iterate over a snapshot of the values with at least one object."""
        return iter(list(self._objects_by_value))

    def count(self, value: str) -> int:
        return len(self._objects_by_value.get(value, ()))

    def _values_of(self, obj: T) -> Sequence[str]:
        try:
            return tuple(self.values(obj))
        except Exception:
            # One odd object must not keep the others out of the store.
            logger.exception("an object cannot be indexed", extra={"key": str(obj.metadata.key)})
            return ()

    def replace(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        """Replace the object under the key."""
        stale = set() if old is None else set(self._values_of(old))
        for value in () if new is None else self._values_of(new):
            # Buckets keep the order of arrival, which an update must not change.
            self._objects_by_value.setdefault(value, {})[key] = new  # type: ignore[assignment]
            stale.discard(value)
        for value in stale:
            bucket = self._objects_by_value.get(value, {})
            bucket.pop(key, None)
            if not bucket:
                self._objects_by_value.pop(value, None)


class Store(Generic[T]):
    """The known objects of one resource, as of :attr:`resource_version`.

    Anyone may read; only the informer writes, except for :meth:`prune`. Objects are shared and
    frozen.
    """

    def __init__(self) -> None:
        # Never older than the last applied event or bookmark: read-your-own-writes relies on it.
        self.resource_version = ""
        self._objects: dict[ObjectKey, T] = {}
        self._indexes: dict[str, Index[T]] = {_OWNER: Index(owners)}
        # What will replace the contents, while it is filled.
        self._replacement: Self | None = None

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        """Iterate over a snapshot of the current objects."""
        return iter(list(self._objects.values()))

    def owned_by(self, namespace: str, uid: UID) -> list[T]:
        """Return the objects whose controller is the one of this namespace with this UID."""
        return self._indexes[_OWNER][owner_value(namespace, uid)]

    def owned_count(self, namespace: str, uid: UID) -> int:
        """Return the length of :meth:`owned_by`, without making the list."""
        return self.count(_OWNER, owner_value(namespace, uid))

    def indexed(self, name: str, value: str) -> list[T]:
        """Return the objects with this value in an index.

        :raises KeyError: if there is no index of this name.
        """
        return self._indexes[name][value]

    def index_values(self, name: str) -> list[str]:
        """Return the values in an index that have objects."""
        return list(self._indexes[name])

    def count(self, name: str, value: str) -> int:
        """Return the length of :meth:`indexed`, without making the list."""
        return self._indexes[name].count(value)

    def add_index(self, name: str, values: Callable[[T], Iterable[str]]) -> None:
        """Add an index over existing and future objects; the function must be pure."""
        if name in self._indexes:
            raise ValueError(f"the index {name!r} already exists")
        index = Index(values)
        for key, obj in self._objects.items():
            index.replace(key, None, obj)
        self._indexes[name] = index

    def put(self, obj: T) -> T | None:
        """Store the object and return the one it replaces."""
        key = obj.metadata.key
        old = self._objects.get(key)
        self._objects[key] = obj
        self._index(key, old, obj)
        return old

    def prune(self, obj: T, pruned: T) -> None:
        """Replace an object by a smaller form, unless a newer one has been stored."""
        if self._objects.get(obj.metadata.key) is obj:
            self.put(pruned)
        if self._replacement is not None:
            self._replacement.prune(obj, pruned)

    def remove(self, key: ObjectKey) -> T | None:
        """Remove the object and return it; None if there is none."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._index(key, old, None)
        return old

    def _index(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        for index in self._indexes.values():
            index.replace(key, old, new)

    def start_replacement(self) -> Self:
        """Return an empty store with the same indexes, for :meth:`replace_contents`.

        Objects of this one that are pruned meanwhile are pruned there as well.
        """
        fresh = type(self)()
        for name, index in self._indexes.items():
            if name != _OWNER:
                fresh.add_index(name, index.values)
        self._replacement = fresh
        return fresh

    def replace_contents(self, other: Self) -> None:
        """Take over the contents of another store in one step; do not use that one afterwards."""
        self.resource_version = other.resource_version
        self._objects = other._objects
        self._indexes = other._indexes
        self._replacement = None


def owners(obj: Object) -> Iterable[str]:
    """Return an object's controller, as the values of an index."""
    uid = obj.metadata.controller_uid
    return () if uid is None else (owner_value(obj.metadata.namespace or "", uid),)


def owner_value(namespace: str, uid: UID) -> str:
    """Return the value of an owner in an index.

    It contains the namespace: an owner reference to an object in another one matches nothing.
    """
    return f"{namespace}/{uid}"
