"""The ready keys of one priority: no tenant waits for all keys of another."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K")


class FairLevel(Generic[K]):
    """The tenants take turns, and the keys of each come in order of arrival."""

    def __init__(self, tenant_of: Callable[[K], Hashable]) -> None:
        self._tenant_of = tenant_of
        self._keys_by_tenant: dict[Hashable, OrderedDict[K, None]] = {}
        # The same, the next one first. One whose keys were removed is dropped when its turn comes.
        self._turns: deque[tuple[Hashable, OrderedDict[K, None]]] = deque()
        self.count = 0

    def append(self, key: K) -> None:
        """Add a key that is not in the level."""
        tenant = self._tenant_of(key)
        keys = self._keys_by_tenant.get(tenant)
        if keys is None:
            keys = self._keys_by_tenant[tenant] = OrderedDict()
            self._turns.append((tenant, keys))
        keys[key] = None
        self.count += 1

    def remove(self, key: K) -> None:
        """Remove a key that is in the level."""
        del self._keys_by_tenant[self._tenant_of(key)][key]
        self.count -= 1

    def pop(self) -> K:
        """Remove and return the oldest key of the tenant whose turn it is."""
        turn = tenant, keys = self._turns.popleft()
        while not keys:
            del self._keys_by_tenant[tenant]
            turn = tenant, keys = self._turns.popleft()
        key, _ = keys.popitem(last=False)
        if keys or not self._turns:
            # The only tenant stays: its next key is often the next one of all.
            self._turns.append(turn)
        else:
            del self._keys_by_tenant[tenant]
        self.count -= 1
        return key
