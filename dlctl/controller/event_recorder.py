"""Records events of core/v1 about jobs, sent in the background.

Recording never blocks and never fails. Events may be combined, counted or dropped, and no decision
may depend on one.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Final, Protocol

from dlctl import logs
from dlctl.api.meta import EVENTS, ObjectKey, ObjectMeta, Resource
from dlctl.clock import Clock, timestamp
from dlctl.controller.event_correlator import (
    CorrelatedEvent,
    Event,
    EventCorrelator,
    ObjectReference,
)
from dlctl.controller.event_queue import EventQueue
from dlctl.errors import MAX_REASON_CHARS, truncated
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    NamespaceTerminatingError,
    NotFoundError,
    UnexpectedResponseError,
    UnreachableError,
)
from dlctl.metrics import Metrics

logger = logging.getLogger(__name__)

MAX_QUEUED_EVENTS: Final = 1000
MAX_TRIES_PER_EVENT: Final = 12
RETRY_INTERVAL_S: Final = 10.0


class EventSink(Protocol):
    """The part of a client that the recorder needs."""

    async def create(
        self, resource: Resource, namespace: str, body: Mapping[str, object], /
    ) -> object:
        """Create an object, or raise ApiError or UnreachableError."""
        ...

    async def patch(
        self, resource: Resource, key: ObjectKey, body: Mapping[str, object], /
    ) -> object:
        """Update an object with a merge patch, or raise ApiError or UnreachableError."""
        ...


class EventRecorder:
    """A bounded queue of events, and the task that sends them, those of a namespace in order.

    While the server is unreachable the queue fills up; once it is full, new events are dropped of
    the namespace that has the most.
    """

    def __init__(
        self, sink: EventSink, *, clock: Clock, metrics: Metrics, component: str = "dlctl"
    ) -> None:
        self._sink = sink
        self._correlator = EventCorrelator(clock)
        self._dropped = metrics.dlctl_events_dropped_total
        self._component = component
        self._queue = EventQueue(MAX_QUEUED_EVENTS)
        self._queued = asyncio.Event()
        self._closing = asyncio.Event()

    def record(
        self,
        resource: Resource,
        metadata: ObjectMeta,
        type_: str,
        reason: str,
        message: str,
        *,
        source: str = "",
    ) -> None:
        """Record an event about an object: type Normal or Warning, a CamelCase reason.

        ``source`` is the reporting component, if not the recorder's own.
        """
        if self._closing.is_set() or not self._queue.has_room(metadata.key.namespace):
            self._dropped.labels("closing" if self._closing.is_set() else "full").inc()
            return
        regarding = ObjectReference(resource, metadata.key, metadata.uid)
        # Truncated now: the text of users waits here, and in the correlator.
        reason, message = truncated(reason, MAX_REASON_CHARS), truncated(message)
        correlated = self._correlator.correlate(Event(regarding, type_, reason, message, source))
        # Now, too: what is over the limit of one object must not fill the queue of all.
        if correlated is None:
            self._dropped.labels("rate limited").inc()
            return
        if self._queue.put(correlated) is not None:
            self._dropped.labels("full").inc()
        self._queued.set()

    async def run(self) -> None:
        """Send events until :meth:`close`, then the remaining ones.

        On cancellation, the remaining ones are counted as dropped.
        """
        try:
            await self._process_queue()
        finally:
            self._dropped.labels("closing").inc(len(self._queue))
            self._queue.clear()

    async def _process_queue(self) -> None:
        while True:
            while self._queue:
                await self._process(self._queue.pop())
            if self._closing.is_set():
                return
            self._queued.clear()
            await self._queued.wait()

    def close(self) -> None:
        """Accept no more events, and try each remaining one only once."""
        self._closing.set()
        self._queued.set()

    async def _process(self, correlated: CorrelatedEvent) -> None:
        try:
            await self._write_with_retries(correlated)
        except Exception:
            # Any error affects one event only.
            self._dropped.labels("error").inc()
            event = correlated.event
            extra = {"reason": event.reason, "regarding": str(event.regarding.key)}
            logger.exception("event failed", extra=extra)

    async def _write_with_retries(self, correlated: CorrelatedEvent) -> None:
        for attempt in range(MAX_TRIES_PER_EVENT):
            try:
                await self._write(correlated)
            except ApiError as error:
                # The server would reject the same event again.
                self._drop(correlated, "rejected", error)
                return
            except (UnreachableError, UnexpectedResponseError) as error:
                # The first pause is random: many controllers lose a server at the same moment.
                pause_s = RETRY_INTERVAL_S if attempt else random.uniform(0, RETRY_INTERVAL_S)
                if attempt == MAX_TRIES_PER_EVENT - 1 or await self._closed_within(pause_s):
                    self._drop(correlated, "unreachable", error)
                    return
            else:
                return

    async def _write(self, correlated: CorrelatedEvent) -> None:
        event = correlated.event
        namespace = event.regarding.key.namespace or "default"
        if correlated.count > 1:
            try:
                patch = {
                    "count": correlated.count,
                    "lastTimestamp": timestamp(correlated.last_timestamp),
                    "message": truncated(event.message),
                }
                await self._sink.patch(EVENTS, ObjectKey(namespace, correlated.name), patch)
            except NotFoundError:
                # The server keeps events for about an hour; the count goes on in a new one.
                pass
            else:
                return
        try:
            await self._sink.create(EVENTS, namespace, self._render(correlated, namespace))
        except AlreadyExistsError:
            # An earlier attempt succeeded, but its response was lost.
            return

    def _render(self, correlated: CorrelatedEvent, namespace: str) -> Mapping[str, object]:
        event = correlated.event
        regarding = event.regarding
        component = event.source or self._component
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": correlated.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": regarding.resource.api_version,
                "kind": regarding.resource.kind,
                "namespace": regarding.key.namespace,
                "name": regarding.key.name,
                "uid": regarding.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": truncated(event.message),
            "count": correlated.count,
            "firstTimestamp": timestamp(correlated.first_timestamp),
            "lastTimestamp": timestamp(correlated.last_timestamp),
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
        }

    async def _closed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True

    def _drop(self, correlated: CorrelatedEvent, why: str, error: Exception) -> None:
        self._dropped.labels(why).inc()
        # A namespace that is being deleted, or is gone, takes no events.
        is_expected = isinstance(error, NamespaceTerminatingError | NotFoundError)
        logger.log(
            logging.DEBUG if is_expected else logging.WARNING,
            "event dropped",
            extra={
                "reason": correlated.event.reason,
                "regarding": str(correlated.event.regarding.key),
                logs.ERROR: str(error),
            },
        )
