"""What a world asks of its API server, be it the embedded one or a real one behind a proxy.

Nothing here tells which one it is.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from dlctl.api.meta import ObjectKey, Resource
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.faults import Faults
from dlctl.local.apiserver.handler import AuditKey
from dlctl.local.apiserver.stored_objects import StorageEvent, StoredObject


class Objects(Protocol):
    """What there is, and whom to tell of each change."""

    @property
    def revision(self) -> int: ...
    @property
    def observers(self) -> list[Callable[[StorageEvent], None]]: ...
    def get(self, resource: Resource, key: ObjectKey) -> StoredObject | None: ...
    def objects(self, resource: Resource, namespace: str = "") -> Sequence[StoredObject]: ...


class Server(Protocol):
    """An API server that can be looked into, and made to fail those who come through its door."""

    @property
    def storage(self) -> Objects: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def audit(self) -> Counter[AuditKey]: ...
    def config(self) -> ClusterConfig: ...
