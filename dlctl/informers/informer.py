"""An informer: a reflector, the store it fills, and the handlers it notifies.

Handlers only map objects to keys; reacting to changes is up to the controllers.
"""

from typing import Generic, TypeVar, Unpack

from dlctl.api.meta import Object, Resource
from dlctl.clock import Clock
from dlctl.informers.handlers import Handlers, ResourceEventHandler
from dlctl.informers.reflector import Reflector
from dlctl.informers.reflector_backoff import ReflectorBackoff
from dlctl.informers.reflector_metrics import ReflectorMetrics
from dlctl.informers.source import Source
from dlctl.informers.store import Store
from dlctl.informers.store_syncer import MalformedHandler, StoreSyncer
from dlctl.kube.client import Client
from dlctl.kube.queries import Selection
from dlctl.metrics import Metrics

T = TypeVar("T", bound=Object)


class InformerOptions(Selection, total=False):
    """Which objects an informer holds; its clock, metrics and back-off have defaults."""

    clock: Clock
    metrics: Metrics | None
    backoff: ReflectorBackoff


class Informer(Generic[T]):
    """The selected objects of one resource, and their changes.

    The store lags behind the server, sees the states of each object in order but possibly not all
    of them, and never goes back. Handlers see the changes of one object in order, after the store
    does; there is no order between objects.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        as_: type[T],
        *,
        store: Store[T] | None = None,
        **options: Unpack[InformerOptions],
    ) -> None:
        metrics = options.get("metrics") or Metrics()
        self.resource = resource
        self.store: Store[T] = Store() if store is None else store
        self._handlers: Handlers[T] = Handlers(resource, metrics)
        self._syncer = StoreSyncer(resource, self.store, self._handlers, metrics)
        selected = Selection(
            namespace=options.get("namespace", ""),
            label_selector=options.get("label_selector", ""),
            field_selector=options.get("field_selector", ""),
        )
        self._reflector = Reflector(
            Source(client, resource, as_, selected),
            self._syncer,
            metrics=ReflectorMetrics(metrics, resource.group_resource),
            clock=options.get("clock"),
            backoff=options.get("backoff"),
        )
        self._started = False
        self._stopped = False

    def has_synced(self) -> bool:
        """Return whether the first list, even if empty, is stored and all handlers have seen it.

        It is false for a while after a handler was added to a full store.
        """
        return self._syncer.synced.is_set() and self._handlers.caught_up.is_set()

    def is_synced_or_unserved(self) -> bool:
        """Return whether it has synced, or the server does not serve the resource."""
        return self._syncer.synced.is_set() or not self._reflector.served

    async def wait_synced(self) -> None:
        """Wait for :meth:`has_synced`; the caller sets the timeout."""
        await self._syncer.synced.wait()
        await self.wait_caught_up()

    async def wait_caught_up(self) -> None:
        """Wait until all handlers have seen the objects that are stored, if any."""
        await self._handlers.caught_up.wait()

    def add_handler(self, handler: ResourceEventHandler[T]) -> None:
        """Notify a plain function of every change, starting with the existing objects.

        Of a full store it is shown the first objects now; :meth:`wait_synced` waits for the others.
        """
        if self._stopped:
            raise RuntimeError(f"the informer for {self.resource.group_resource} has stopped")
        self._handlers.add(handler, self.store)

    def add_malformed_handler(self, handler: MalformedHandler) -> None:
        """Show a plain function each object that cannot be decoded, once until that changes."""
        self._syncer.add_malformed_handler(handler)

    async def run(self) -> None:
        """List and watch until cancelled; an informer runs only once."""
        if self._started:
            raise RuntimeError(
                f"the informer for {self.resource.group_resource} was already started"
            )
        self._started = True
        try:
            await self._reflector.run()
        finally:
            self._stopped = True
            self._handlers.stop_replays()

    async def clear(self) -> None:
        """Remove all objects of a stopped informer, as if they had been deleted."""
        await self._syncer.replace([], [], self.store.resource_version)
