"""An informer of a resource that the cluster may not serve, in one of several versions.

While it is not served, one small request in a few minutes looks for it, and nothing waits for it.
A server that does not say whether it serves it is asked again soon: it may be starting.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Generic, TypeVar, Unpack

import attrs

from dlctl.api.meta import Object, Resource
from dlctl.clock import SystemClock
from dlctl.errors import DlctlError
from dlctl.informers.handlers import ResourceEventHandler
from dlctl.informers.informer import Informer, InformerOptions
from dlctl.informers.reflector_backoff import ReflectorBackoff
from dlctl.informers.store import Store
from dlctl.kube.client import Client
from dlctl.kube.discovery import served_version

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

DISCOVERY_INTERVAL_S: Final = 300.0


class DiscoveredInformer(Generic[T]):
    """The objects of the first of some versions that the server serves; none if it serves none."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        versions: Sequence[str],
        as_: type[T],
        **options: Unpack[InformerOptions],
    ) -> None:
        self.resource = resource
        self.store: Store[T] = Store()
        self._client = client
        self._versions = versions
        self._as = as_
        self._options = options
        self._backoff = ReflectorBackoff(options.get("clock") or SystemClock())
        self._handlers: list[ResourceEventHandler[T]] = []
        self._informer: Informer[T] | None = None

    def add_handler(self, handler: ResourceEventHandler[T]) -> None:
        """Notify a plain function of every change, starting with the existing objects."""
        self._handlers.append(handler)
        if self._informer is not None:
            self._informer.add_handler(handler)

    async def run(self) -> None:
        """Look for the resource, and list and watch it while it is served, until cancelled."""
        version = await self._discover()
        while True:
            if version:
                version = await self._follow(version)
            else:
                await asyncio.sleep(DISCOVERY_INTERVAL_S)
                version = await self._discover()

    async def _follow(self, version: str) -> str:
        """List and watch one version until discovery prefers another; return that one."""
        resource = attrs.evolve(self.resource, version=version)
        informer = Informer(self._client, resource, self._as, store=self.store, **self._options)
        for handler in self._handlers:
            informer.add_handler(handler)
        self._informer = informer
        async with asyncio.TaskGroup() as group:
            running = group.create_task(informer.run(), name=f"informer {resource}")
            preferred = version
            while preferred == version:
                await asyncio.sleep(DISCOVERY_INTERVAL_S)
                preferred = await self._discover()
            running.cancel()
        self._informer = None
        if not preferred:
            # Their deletions may have been missed.
            await informer.clear()
        return preferred

    async def _discover(self) -> str:
        """Return the version to use, empty if the server serves none, once the server says so."""
        reported = ""
        while True:
            try:
                return await served_version(self._client, self.resource.group, self._versions)
            except DlctlError as error:
                if str(error) != reported:
                    reported = str(error)
                    extra = {"resource": self.resource.group_resource, "error": reported}
                    logger.info("cannot discover a resource", extra=extra)
                await self._backoff.pause_after(error)
            except Exception:
                # Whatever the server sent, ask again.
                extra = {"resource": self.resource.group_resource}
                logger.exception("discovery failed", extra=extra)
                await self._backoff.pause()
