"""The harness on a real cluster: real time, its own namespace and node.

The cluster is the one of CONTRACT_KUBECONFIG. Its other nodes must be kwok's; it may fill up with
leftovers of tests: namespaces are not emptied.
"""

import asyncio
import os
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import attrs
import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, EVENTS, NAMESPACES, PODS, SERVICES, ObjectKey, Resource
from dlctl.clock import SystemClock
from dlctl.dialects.kind import Kind
from dlctl.kube.client import Client
from dlctl.kube.config import ClusterConfig, load
from dlctl.kube.errors import NotFoundError
from dlctl.kube.write_fence import MayWrite
from dlctl.local.apiserver.faults import Faults
from dlctl.local.apiserver.handler import AuditKey
from dlctl.local.apiserver.storage.stored_objects import StorageEvent
from dlctl.options import Options
from tests.builders import KINDS
from tests.support.harness import ClusterHarness, WaitTimes, first_of
from tests.support.history import History
from tests.support.mirror import Mirror
from tests.support.proxy import Proxy, serve_proxy
from tests.support.real_node import RealNode

KUBECONFIG: Final = os.environ.get("CONTRACT_KUBECONFIG", "")
_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
WAIT_TIMES: Final = WaitTimes(quiet_s=1.5, patience_s=120.0, max_advance_s=3.0)
_OPTIONS: Final = Options(restart_backoff_s=0.5, restart_backoff_cap_s=1.0)
# Of a watch. The server sends bookmarks once a minute: an injected silence must be shorter.
_SILENCE_S: Final = 4.0
_POLL_S: Final = 0.05
_RESPONSE_S: Final = 120.0
# Watches of events have no bookmarks: they may be silent from the first to the last event.
_LONGEST_TEST_S: Final = 600.0
_CREATED_S: Final = 60.0


@attrs.frozen
class RealServer:
    """A real API server, read through a mirror and accessed through a proxy."""

    storage: Mirror
    proxy: Proxy
    address: ClusterConfig

    @property
    def faults(self) -> Faults:
        return self.proxy.faults

    @property
    def audit(self) -> Counter[AuditKey]:
        return self.proxy.audit

    def config(self) -> ClusterConfig:
        return self.address


@attrs.define(eq=False)
class RealClusterHarness(ClusterHarness):
    """A namespace of a real cluster."""

    mirror: Mirror = attrs.field(kw_only=True)
    proxy: Proxy = attrs.field(kw_only=True)
    # The same object as ``node``.
    kubelet: RealNode = attrs.field(kw_only=True)

    def client(self, user_agent: str, may_write: MayWrite | None = None) -> Client:
        return Client(
            self.server.config(),
            user_agent=user_agent,
            may_write=may_write,
            watch_idle_timeout_s=_SILENCE_S,
        )

    async def install(self, kind: Kind) -> None:
        await super().install(kind)
        for resource in (kind.resource, *kind.dependent_resources):
            await self.mirror.follow(resource)

    async def start_job_controller(self) -> None:
        await self.mirror.follow(BATCH_JOBS)

    async def _created(self, kind: Kind, job: JSON) -> JSON:
        has_script = self.key(job["metadata"]["name"]) in self.kubelet.scripts
        return await super()._created(
            kind, self.kubelet.with_node_selector(job) if has_script else job
        )

    def require_embedded(self, why: str) -> None:
        pytest.skip(why)

    def is_busy(self) -> bool:
        """Return whether a part is at work, if only because it is slow."""
        return (
            self.kubelet.is_busy
            or self.proxy.open_write_count > 0
            or any(controller.is_busy for controller in self._controllers)
        )

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait as on the embedded server; here, what holds for a moment may be over by then."""
        held = False

        def look(_: StorageEvent) -> None:
            nonlocal held
            # An error that lasts is raised below.
            with suppress(Exception):
                held = held or bool(holds())

        self.mirror.observers.append(look)
        try:
            await super().until(lambda: held or holds())
        finally:
            self.mirror.observers.remove(look)

    async def sync(self) -> None:
        await self.mirror.caught_up()


@asynccontextmanager
async def start_real_cluster(
    *,
    kinds: Sequence[Kind] = KINDS,
    options: Options = _OPTIONS,
    wait_times: WaitTimes = WAIT_TIMES,
) -> AsyncIterator[ClusterHarness]:
    """Create a namespace in the real cluster, with all kinds installed."""
    try:
        async with AsyncExitStack() as stack:
            whole = await _built(stack, kinds, options, wait_times)
            for kind in kinds:
                await whole.install(kind)
            yield whole
    except BaseExceptionGroup as failures:
        raise first_of(failures) from None


async def _built(
    stack: AsyncExitStack, kinds: Sequence[Kind], options: Options, wait_times: WaitTimes
) -> RealClusterHarness:
    config, namespace = await load(KUBECONFIG), f"dlctl-{uuid.uuid4().hex[:8]}"
    proxy, url = await stack.enter_async_context(serve_proxy(config))
    plain = ClusterConfig.with_token(url, "")
    user, kubelet = [
        await stack.enter_async_context(
            Client(
                plain,
                user_agent=name,
                request_timeout_s=_RESPONSE_S,
                watch_idle_timeout_s=_LONGEST_TEST_S,
            )
        )
        for name in ("user", "kubelet")
    ]
    await _make_namespace(user, namespace)
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    mirror = Mirror(user, namespace, tasks)
    stack.callback(mirror.close)
    for resource in (PODS, SERVICES, EVENTS):
        await mirror.follow(resource)
    mirror.observers.append(proxy.note)
    server = RealServer(mirror, proxy, plain)
    node = RealNode(server, kubelet, SystemClock(), name=f"node-of-{namespace}")
    await node.register()
    stack.push_async_callback(node.remove)
    for work in (node.run(), node.renew_lease()):
        stack.callback(tasks.create_task(work, name="real node").cancel)
    whole = RealClusterHarness(
        server,
        user,
        node,
        History(server),
        kinds,
        attrs.evolve(options, namespace=namespace),
        SystemClock(),
        tasks,
        namespace,
        wait_times,
        mirror=mirror,
        proxy=proxy,
        kubelet=node,
    )
    stack.push_async_callback(whole.kill_all)
    return whole


async def _make_namespace(user: Client, name: str) -> None:
    await user.create(NAMESPACES, "", {"metadata": {"name": name}})
    # Pods are rejected until their service account exists.
    async with asyncio.timeout(_CREATED_S):
        while True:
            try:
                await user.get(_ACCOUNTS, ObjectKey(name, "default"), JSON)
            except NotFoundError:
                await asyncio.sleep(_POLL_S)
            else:
                return
