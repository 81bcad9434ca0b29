"""Cluster IPs of services: allocated in order, released when a service is deleted.

Nothing routes to them here; the node substitutes names. They exist because clients expect them.
"""

import ipaddress
from typing import Any

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import SERVICES
from dlctl.local.apiserver import status
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of

# The range of kubeadm, which users know from real clusters.
NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
# The first address is the cluster's own API.
API_IP = str(NETWORK[1])


@attrs.define(eq=False)
class ClusterIPAllocator:
    """Allocates a cluster IP of its own to each service that needs one."""

    storage: Storage
    _allocated: dict[str, str] = attrs.field(factory=dict)
    # The first few are reserved for the cluster itself.
    _next: int = 10

    def __attrs_post_init__(self) -> None:
        self.storage.observers.append(self._observe)

    def prepare_for_create(self, service: JSON) -> JSON:
        """Return a new service with its address; one that is taken is rejected."""
        spec: dict[str, Any] = service.get("spec") or {}
        wanted = spec.get("clusterIP")
        if wanted == "None":
            return {**service, "spec": spec | {"clusterIPs": ["None"]}}
        if spec.get("type") == "ExternalName":
            return service
        if wanted and wanted in self._allocated:
            error = FieldError.invalid(
                "spec.clusterIPs",
                [wanted],
                f"failed to allocate IP {wanted}: provided IP is already allocated",
            )
            raise status.invalid(SERVICES, service["metadata"]["name"], [error])
        address = wanted or self._next_free()
        return {**service, "spec": spec | {"clusterIP": address, "clusterIPs": [address]}}

    def _next_free(self) -> str:
        for _ in range(NETWORK.num_addresses):
            address = str(NETWORK[self._next])
            self._next = (self._next + 1) % (NETWORK.num_addresses - 1) or 10
            if address not in self._allocated:
                return address
        raise status.internal_error("failed to allocate a serviceIP: range is full")

    def _observe(self, change: StorageEvent) -> None:
        if change.table != table_of(SERVICES) or (change.old and change.new):
            return
        stored = change.new or change.old
        assert stored is not None
        address = (stored.decoded(SERVICES).get("spec") or {}).get("clusterIP")
        if not address or address == "None":
            return
        if change.new is not None:
            self._allocated[address] = stored.uid
        else:
            self._allocated.pop(address, None)
