"""The lease on an embedded server, and watchdogs that tests read."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import LEASES, ObjectKey
from dlctl.kube.client import Client
from dlctl.leaderelection.lease_timing import LeaseTiming
from dlctl.local.apiserver.server import ApiServer

KEY: Final = ObjectKey("default", "dlctl")
LEASE_PATH: Final = "leases.coordination.k8s.io"
# The smallest that leave some time for each step.
QUICK: Final = LeaseTiming(lease_s=1.0, renew_s=0.6, retry_s=0.15, stall_s=5.0)


@attrs.define
class FakeWatchdog:
    """Records its calls, and kills nothing."""

    armed_s: float | None = None

    def arm(self, seconds: float) -> None:
        self.armed_s = seconds

    def disarm(self) -> None:
        self.armed_s = None


def stored_lease(server: ApiServer) -> JSON:
    stored = server.storage.get(LEASES, KEY)
    return stored.decoded(LEASES) if stored else {}


@attrs.define
class LeaseServer:
    """A server, a client per user agent, and the lease as it is stored."""

    server: ApiServer
    user: Client

    @property
    def lease(self) -> JSON:
        return stored_lease(self.server)

    @property
    def spec(self) -> JSON:
        return self.lease.get("spec") or {}

    @property
    def holder(self) -> str:
        return self.spec.get("holderIdentity") or ""

    async def put(self, spec: Mapping[str, Any], **metadata: Any) -> None:
        """Write a lease as another client would."""
        body: JSON = {"metadata": {"name": KEY.name, **metadata}, "spec": spec}
        if self.lease:
            body["metadata"]["resourceVersion"] = self.lease["metadata"]["resourceVersion"]
            await self.user.replace(LEASES, KEY, body)
        else:
            await self.user.create(LEASES, KEY.namespace, body)

    def requests(self, user_agent: str) -> list[str]:
        """Return the verbs of the requests so far, with repetitions."""
        return sorted(
            audited.verb
            for audited, count in self.server.audit.items()
            for _ in range(count)
            if audited.user_agent == user_agent and audited.resource == LEASE_PATH
        )
