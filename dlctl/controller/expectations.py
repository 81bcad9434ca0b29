"""Read your own writes: whether the stores reflect the controller's own changes.

Until they do, a reconcile would decide on old state and repeat itself. Nothing is counted: a write
is identified by its resource version, a deletion by the UID of its object. Writes of others are
never waited for.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from dlctl.api.meta import UID, Object, Resource
from dlctl.clock import Clock
from dlctl.kube.errors import UnexpectedResponseError

logger = logging.getLogger(__name__)

# A store that lags longer is broken, and must not block a job indefinitely.
EXPIRY_S: Final = 300.0


class ChildStore(Protocol):
    """The part of a store that expectations need."""

    @property
    def resource_version(self) -> str:
        """Return the resource version of the store; empty before its first list."""
        ...

    def owned_by(self, namespace: str, uid: UID, /) -> Sequence[Object]:
        """Return the objects that the owner controls."""
        ...


@attrs.define
class _OwnerWrites:
    """The writes of one owner's reconciles since the stores last reflected all of them."""

    last_write_s: float
    versions: dict[Resource, int] = attrs.field(factory=dict)
    deleted: dict[Resource, set[UID]] = attrs.field(factory=dict)
    # The version of each store at the last look.
    shown: dict[Resource, int] = attrs.field(factory=dict)


class Expectations:
    """The writes that the stores may not reflect yet, by the UID of the job they were made for.

    A job that is deleted and created again has a new UID, and so no expectations. Unused records
    expire after five minutes without a write.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # In order of the last write, so that expired records come first.
        self._writes_by_owner: dict[UID, _OwnerWrites] = {}

    def __len__(self) -> int:
        return len(self._writes_by_owner)

    def expect_write(self, owner: UID, resource: Resource, resource_version: str) -> None:
        """Expect the resource version that a successful write returned.

        :raises UnexpectedResponseError: if it is none. The write may have been done.
        """
        if not resource_version.isdecimal():
            raise UnexpectedResponseError("the response to a write has no resource version")
        versions = self._touch(owner).versions
        versions[resource] = max(int(resource_version), versions.get(resource, 0))

    def expect_deletion(self, owner: UID, resource: Resource, uid: UID) -> None:
        """Expect the deletion of one of the owner's objects, which the server accepted."""
        self._touch(owner).deleted.setdefault(resource, set()).add(uid)

    def satisfied(self, namespace: str, owner: UID, stores: Mapping[Resource, ChildStore]) -> bool:
        """Return whether the stores reflect all writes for the owner; if so, forget them.

        Every resource that was written needs a store: a missing one raises a KeyError.
        """
        writes = self._writes_by_owner.get(owner)
        if writes is None:
            return True
        before, writes.shown = writes.shown, _versions(stores, writes.versions)
        if self._expired(writes):
            logger.warning("own writes were not seen in time", extra={"owner_uid": owner})
        elif _has_gone_back(before, writes.shown):
            logger.warning("own writes may be undone", extra={"owner_uid": owner})
        elif not _is_satisfied(writes, namespace, owner, stores):
            return False
        del self._writes_by_owner[owner]
        return True

    def forget(self, owner: UID) -> None:
        """Drop the expectations of an owner that is gone."""
        self._writes_by_owner.pop(owner, None)

    def _touch(self, owner: UID) -> _OwnerWrites:
        while self._writes_by_owner:
            oldest = next(iter(self._writes_by_owner))
            if not self._expired(self._writes_by_owner[oldest]):
                break
            del self._writes_by_owner[oldest]
        writes = self._writes_by_owner.pop(owner, None) or _OwnerWrites(0.0)
        writes.last_write_s = self._clock.monotonic()
        self._writes_by_owner[owner] = writes
        return writes

    def _expired(self, writes: _OwnerWrites) -> bool:
        return self._clock.monotonic() - writes.last_write_s > EXPIRY_S


def _versions(
    stores: Mapping[Resource, ChildStore], resources: Iterable[Resource]
) -> dict[Resource, int]:
    return {one: int(stores[one].resource_version or 0) for one in resources}


def _has_gone_back(before: Mapping[Resource, int], shown: Mapping[Resource, int]) -> bool:
    """Return whether a store is older than at the last look: etcd was restored from a backup."""
    return any(version < before.get(one, 0) for one, version in shown.items())


def _is_satisfied(
    writes: _OwnerWrites, namespace: str, owner: UID, stores: Mapping[Resource, ChildStore]
) -> bool:
    if any(writes.shown[resource] < version for resource, version in writes.versions.items()):
        return False
    for resource, uids in writes.deleted.items():
        # A pod in its grace period still exists, but its deletionTimestamp is enough.
        for child in stores[resource].owned_by(namespace, owner):
            if child.metadata.uid in uids and not child.metadata.is_terminating:
                return False
    return True
