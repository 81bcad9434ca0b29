"""Read your own writes: whether the stores show what the controller itself has just done.

Until they do, a reconciliation would decide on the past and do the same again. Nothing is counted:
a write is known by the resource version that it got, a deletion by the UID of its object. It is
about our own writes only; those of others are never waited for.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from dlctl.api.meta import UID, Object, Resource
from dlctl.clock import Clock

logger = logging.getLogger(__name__)

# A store that lags by more is broken, and a job must not hang on it for ever.
EXPIRY_S: Final = 300.0


class ChildStore(Protocol):
    """What is asked of a store."""

    @property
    def resource_version(self) -> str:
        """Return the version that the store has caught up with; empty before its first list."""
        ...

    def owned_by(self, uid: UID, /) -> Sequence[Object]:
        """Return the objects that the owner controls."""
        ...


@attrs.define
class _OwnerWrites:
    """What one owner's reconciliations have done since the stores last showed all of it."""

    last_write_s: float
    versions: dict[Resource, int] = attrs.field(factory=dict)
    deleted: dict[Resource, set[UID]] = attrs.field(factory=dict)


class Expectations:
    """The writes that the stores may not show yet, by the UID of the job they were made for.

    A job that is deleted and created anew has a new UID, and so nothing to wait for. Records that
    nobody asks for any more are dropped when they expire, after five minutes without a write.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # In order of the last write, so that the expired ones are in front.
        self._writes_by_owner: dict[UID, _OwnerWrites] = {}

    def __len__(self) -> int:
        return len(self._writes_by_owner)

    def expect_write(self, owner: UID, resource: Resource, resource_version: str) -> None:
        """Remember the version that an object of the resource got from a write that succeeded."""
        versions = self._touch(owner).versions
        versions[resource] = max(int(resource_version), versions.get(resource, 0))

    def expect_deletion(self, owner: UID, resource: Resource, uid: UID) -> None:
        """Remember that the server has taken the deletion of one of the owner's objects."""
        self._touch(owner).deleted.setdefault(resource, set()).add(uid)

    def satisfied(self, owner: UID, stores: Mapping[Resource, ChildStore]) -> bool:
        """Tell whether the stores show all writes for the owner, and if so, forget them.

        There must be a store for every resource that was written: one without would never be.
        """
        writes = self._writes_by_owner.get(owner)
        if writes is None:
            return True
        if self._expired(writes):
            logger.warning("own writes were not seen in time", extra={"owner_uid": owner})
        elif not _is_satisfied(writes, owner, stores):
            return False
        del self._writes_by_owner[owner]
        return True

    def forget(self, owner: UID) -> None:
        """Wait for nothing of an owner any more: it is gone."""
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


def _is_satisfied(writes: _OwnerWrites, owner: UID, stores: Mapping[Resource, ChildStore]) -> bool:
    for resource, version in writes.versions.items():
        if int(stores[resource].resource_version or 0) < version:
            return False
    for resource, uids in writes.deleted.items():
        # A pod with a grace period is still there, but says that it goes: that is enough.
        for child in stores[resource].owned_by(owner):
            if child.metadata.uid in uids and not child.metadata.is_terminating:
                return False
    return True
