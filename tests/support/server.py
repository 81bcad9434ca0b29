"""The interface of the harness to its API server, embedded or real.

Nothing here depends on which one it is.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from dlctl.api.meta import ObjectKey, Resource
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.faults import Faults
from dlctl.local.apiserver.handler import AuditKey
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, StoredObject


class Objects(Protocol):
    """The stored objects, and the observers of changes."""

    @property
    def revision(self) -> int: ...
    @property
    def observers(self) -> list[Callable[[StorageEvent], None]]: ...
    def get(self, resource: Resource, key: ObjectKey) -> StoredObject | None: ...
    def objects(self, resource: Resource, namespace: str = "") -> Sequence[StoredObject]: ...


class Server(Protocol):
    """An API server whose objects can be inspected, and which can inject faults."""

    @property
    def storage(self) -> Objects: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def audit(self) -> Counter[AuditKey]: ...
    def config(self) -> ClusterConfig: ...
