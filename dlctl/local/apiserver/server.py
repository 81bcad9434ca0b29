"""The API server as a whole: request handling, reactions to writes, and access for clients.

Each :func:`serve` runs one; everything lives in memory and ends with the block.
"""

import asyncio
import base64
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
from aiohttp import web

from dlctl.clock import Clock, SystemClock
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver import builtins, certificates, namespaces, reviews, scheduling_gates
from dlctl.local.apiserver.addresses import ClusterIPAllocator
from dlctl.local.apiserver.authentication import Tokens
from dlctl.local.apiserver.crd_controller import CRDController
from dlctl.local.apiserver.documents import documents
from dlctl.local.apiserver.endpoints import Endpoints
from dlctl.local.apiserver.execs import ExecSource
from dlctl.local.apiserver.faults import Faults
from dlctl.local.apiserver.garbage_collector import GarbageCollector
from dlctl.local.apiserver.handler import AuditKey, LargeRequest, RequestHandler
from dlctl.local.apiserver.objects import Objects
from dlctl.local.apiserver.rbac import Authorizer
from dlctl.local.apiserver.request_info import RequestInfo
from dlctl.local.apiserver.resources import JSON, ResourceRegistry, ServedResource
from dlctl.local.apiserver.storage import WINDOW, Storage
from dlctl.local.apiserver.subresources import LogSource, Subresources
from dlctl.local.apiserver.tables import table_convertor
from dlctl.local.apiserver.token_requests import TokenRequests

_START_NAMESPACES = ("default", "kube-system")


@attrs.define(eq=False)
class ApiServer:
    """A running API server: its address, and its internals for tests and the node."""

    url: str
    token: str = attrs.field(repr=False)
    ca_pem: bytes | None
    storage: Storage
    registry: ResourceRegistry
    objects: Objects
    faults: Faults
    audit: Counter[AuditKey]
    _subresources: Subresources
    _runner: web.ServerRunner
    _identity: certificates.ServingCertificate | None

    async def listen_on(self, listening: socket.socket) -> None:
        """Serve requests on another socket, which the server then owns."""
        context = self._identity.context if self._identity else None
        await web.SockSite(self._runner, listening, ssl_context=context).start()

    @property
    def log_source(self) -> LogSource | None:
        """Return the source of container logs; the node sets it."""
        return self._subresources.log_source

    @log_source.setter
    def log_source(self, source: LogSource | None) -> None:
        self._subresources.log_source = source

    @property
    def exec_source(self) -> ExecSource | None:
        """Return the source of exec sessions; the node sets it."""
        return self._subresources.exec_source

    @exec_source.setter
    def exec_source(self, source: ExecSource | None) -> None:
        self._subresources.exec_source = source

    def config(self, namespace: str = "default") -> ClusterConfig:
        """Return the configuration of a client of our own."""
        return ClusterConfig.with_token(
            self.url, self.token, ca_pem=self.ca_pem, namespace=namespace
        )

    def kubeconfig(self, namespace: str = "default") -> JSON:
        """Return a kubeconfig for kubectl; it contains the token, so keep it private."""
        cluster: JSON = {"server": self.url}
        if self.ca_pem is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_pem).decode()
        name = "dlctl"
        context = {"cluster": name, "user": name, "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
        }


@asynccontextmanager
async def serve(  # noqa: PLR0913 - each is set by some test.
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    tls: bool = True,
    faults: Faults | None = None,
    window: int = WINDOW,
    bookmark_interval_s: float = 60.0,
    clock: Clock | None = None,
) -> AsyncIterator[ApiServer]:
    """Serve the API for the duration of the block, with an empty storage."""
    clock = clock or SystemClock()
    storage, registry = Storage(window), ResourceRegistry()
    objects = Objects(storage, clock)
    builtins.register(registry)
    reviews.register(registry)
    CRDController(objects, registry).attach()
    life = namespaces.NamespaceLifecycle(objects, registry)
    objects.prepare_for_create["namespaces"] = namespaces.prepare_for_create
    objects.prepare_for_update["namespaces"] = namespaces.prepare_for_update
    objects.prepare_for_create["pods"] = scheduling_gates.scheduling_gated_condition(clock)
    objects.prepare_for_create["services"] = ClusterIPAllocator(storage).prepare_for_create
    objects.check_namespace = life.check
    collector = GarbageCollector(objects, registry, life)
    _create_namespaces(objects, registry)

    endpoints = Endpoints(objects, table_convertor(clock), bookmark_interval_s)
    tokens = Tokens(token or secrets.token_urlsafe(24), storage, clock)
    authorizer = Authorizer(storage)
    subresources = Subresources(endpoints, TokenRequests(tokens))

    def find(target: RequestInfo) -> ServedResource | None:
        return registry.find(target.group, target.version, target.plural)

    def knows(target: RequestInfo) -> bool:
        versions = {(each.resource.group, each.resource.version) for each in registry}
        return (target.group, target.version) in versions

    front = RequestHandler(
        tokens=tokens,
        authorizer=authorizer,
        find=find,
        is_known=knows,
        serve=reviews.with_reviews(subresources.serve, authorizer),
        documents=documents(registry),
        faults=faults or Faults(),
    )
    identity = certificates.issue_serving_certificate(host) if tls else None
    runner = web.ServerRunner(
        web.Server(
            front,
            request_factory=LargeRequest,
            # A watch must end when its client has disconnected.
            handler_cancellation=True,
            access_log=None,
        ),
        shutdown_timeout=0.1,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=identity.context if identity else None)
        await site.start()
        address = runner.addresses[0]
        server = ApiServer(
            url=f"{'https' if tls else 'http'}://{host}:{address[1]}",
            token=tokens.admin_token,
            ca_pem=identity.ca_pem if identity else None,
            storage=storage,
            registry=registry,
            objects=objects,
            faults=front.faults,
            audit=front.audit,
            subresources=subresources,
            runner=runner,
            identity=identity,
        )
        async with asyncio.TaskGroup() as tasks:
            collecting = tasks.create_task(collector.run(), name="garbage collector")
            yield server
            collecting.cancel()
    finally:
        await runner.cleanup()


def _create_namespaces(objects: Objects, registry: ResourceRegistry) -> None:
    served = registry.find("", "v1", "namespaces")
    assert served is not None
    for name in _START_NAMESPACES:
        objects.create(served, "", {"metadata": {"name": name}})
