"""The API server as a whole: request handling, reactions to writes, and access for clients.

Each :func:`serve` runs one, which ends with the block; without a journal, so do its objects.
"""

import asyncio
import base64
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import attrs
from aiohttp import web

from dlctl.api.json_types import JSON
from dlctl.api.meta import CLUSTER_ROLES, NAMESPACES, ObjectKey
from dlctl.clock import Clock, SystemClock
from dlctl.http_logger import HTTP_LOGGER
from dlctl.kube.config import ClusterConfig
from dlctl.local.apiserver.auth import certificates, reviews
from dlctl.local.apiserver.auth.authentication import Tokens
from dlctl.local.apiserver.auth.default_roles import DEFAULT_CLUSTER_ROLES, with_missing_defaults
from dlctl.local.apiserver.auth.identity import Identity
from dlctl.local.apiserver.auth.rbac import Authorizer
from dlctl.local.apiserver.auth.token_requests import TokenRequests
from dlctl.local.apiserver.builtins import strategies
from dlctl.local.apiserver.builtins.jobs import with_selector
from dlctl.local.apiserver.crds.controller import CRDController
from dlctl.local.apiserver.discovery.documents import documents
from dlctl.local.apiserver.endpoints.resource_endpoints import Endpoints
from dlctl.local.apiserver.endpoints.subresources import Subresources
from dlctl.local.apiserver.faults import Faults
from dlctl.local.apiserver.handler import AuditKey, LargeRequest, RequestHandler
from dlctl.local.apiserver.resources import ResourceRegistry
from dlctl.local.apiserver.storage import namespaces
from dlctl.local.apiserver.storage.cluster_ips import ClusterIPAllocator
from dlctl.local.apiserver.storage.event_expiry import EventExpiry
from dlctl.local.apiserver.storage.garbage_collector import GarbageCollector
from dlctl.local.apiserver.storage.journal import Journal
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.storage import WINDOW, Storage
from dlctl.local.apiserver.validation import scheduling_gates
from dlctl.local.kubeconfig import kubeconfig

_URL_BYTES: Final = 64 << 10
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
    # The node sets its sources.
    subresources: Subresources
    _runner: web.ServerRunner
    _serving: certificates.ServingCertificate | None

    async def listen_on(self, listening: socket.socket) -> None:
        """Serve requests on another socket, which the server then owns."""
        context = self._serving.context if self._serving else None
        await web.SockSite(self._runner, listening, ssl_context=context).start()

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
        return kubeconfig(cluster, self.token, namespace)


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
    identity: Identity | None = None,
    journal: Journal | None = None,
) -> AsyncIterator[ApiServer]:
    """Serve the API for the duration of the block, with the objects of the journal if there is one.

    :raises ConfigError: if the journal is damaged.
    """
    clock, identity = clock or SystemClock(), identity or Identity()
    objects, registry = Objects(Storage(window), clock), ResourceRegistry()
    collector = _install_resources(objects, registry)
    expiry = EventExpiry(objects.storage, clock)
    if journal is not None:
        journal.attach(objects.storage)
    _create_defaults(objects, registry)
    tokens = Tokens(token or identity.token, objects.storage, clock, identity.signing_key)
    endpoints = Endpoints(objects, bookmark_interval_s)
    subresources = Subresources(endpoints, TokenRequests(tokens))
    handler = _request_handler(registry, tokens, subresources, faults or Faults())
    serving = certificates.issue_serving_certificate(identity.authority, host) if tls else None
    context = serving.context if serving else None
    async with _http_runner(handler) as runner:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        server = ApiServer(
            url=f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}",
            token=tokens.admin_token,
            ca_pem=serving.ca_pem if serving else None,
            storage=objects.storage,
            registry=registry,
            objects=objects,
            faults=handler.faults,
            audit=handler.audit,
            subresources=subresources,
            runner=runner,
            serving=serving,
        )
        async with asyncio.TaskGroup() as tasks:
            collecting = tasks.create_task(collector.run(), name="garbage collector")
            expiring = tasks.create_task(expiry.run(), name="event expiry")
            yield server
            collecting.cancel()
            expiring.cancel()


def _install_resources(objects: Objects, registry: ResourceRegistry) -> GarbageCollector:
    """Serve the built-in resources and CRDs, with the rules that go beyond one object."""
    strategies.register(registry)
    reviews.register(registry)
    CRDController(objects, registry).attach()
    lifecycle = namespaces.NamespaceLifecycle(objects, registry)
    objects.check_namespace = lifecycle.check
    objects.prepare_for_create |= {
        "jobs.batch": with_selector,
        "namespaces": namespaces.prepare_for_create,
        "pods": scheduling_gates.scheduling_gated_condition(objects.clock),
        "services": ClusterIPAllocator(objects.storage).prepare_for_create,
    }
    objects.prepare_for_update["namespaces"] = namespaces.prepare_for_update
    return GarbageCollector(objects, registry, lifecycle)


def _request_handler(
    registry: ResourceRegistry, tokens: Tokens, subresources: Subresources, faults: Faults
) -> RequestHandler:
    authorizer = Authorizer(tokens.storage)
    return RequestHandler(
        tokens=tokens,
        authorizer=authorizer,
        registry=registry,
        serve=reviews.with_reviews(subresources.serve, authorizer),
        documents=documents(registry),
        faults=faults,
    )


@asynccontextmanager
async def _http_runner(handler: RequestHandler) -> AsyncIterator[web.ServerRunner]:
    """Handle HTTP requests on any site that is added, for the duration of the block."""
    runner = web.ServerRunner(
        web.Server(
            handler,
            request_factory=LargeRequest,
            # A watch must end when its client has disconnected.
            handler_cancellation=True,
            access_log=None,
            logger=HTTP_LOGGER,
            # A selector is part of the URL.
            max_line_size=_URL_BYTES,
            max_field_size=_URL_BYTES,
        ),
        shutdown_timeout=0.1,
    )
    await runner.setup()
    try:
        yield runner
    finally:
        await runner.cleanup()


def _create_defaults(objects: Objects, registry: ResourceRegistry) -> None:
    """Create the namespaces and ClusterRoles of every cluster, or complete those of the journal."""
    spaces = [{"metadata": {"name": name}} for name in _START_NAMESPACES]
    for resource, defaults in ((NAMESPACES, spaces), (CLUSTER_ROLES, DEFAULT_CLUSTER_ROLES)):
        served = registry.find(resource.group, resource.version, resource.plural)
        assert served is not None
        for default in defaults:
            key = ObjectKey("", default["metadata"]["name"])
            if objects.storage.get(resource, key) is None:
                objects.create(served, "", default)
            elif resource == CLUSTER_ROLES:
                objects.rewrite(served, key, partial(with_missing_defaults, default=default))
