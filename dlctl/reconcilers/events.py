"""Telling users what happened to their jobs: events of core/v1, sent in the background.

Recording never blocks and never fails. Events are a courtesy: they may be combined, counted or
dropped, and no decision may rest on one.
"""

import asyncio
import datetime
import logging
import random
from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

from dlctl import logs
from dlctl.api.meta import EVENTS, ObjectKey, ObjectMeta, Resource
from dlctl.clock import Clock
from dlctl.errors import shortened
from dlctl.kube.errors import (
    AlreadyExistsError,
    ApiError,
    NotFoundError,
    UnexpectedAnswerError,
    UnreachableError,
)
from dlctl.metrics import Metrics
from dlctl.reconcilers.correlator import Correlator, Occurrence, Regarding, Report

logger = logging.getLogger(__name__)

PENDING: Final = 1000
TRIES: Final = 12
RETRY_S: Final = 10.0


class EventSink(Protocol):
    """What is needed of a client."""

    async def create(
        self, resource: Resource, namespace: str, body: Mapping[str, object], /
    ) -> object:
        """Create an object, or raise ApiError or UnreachableError."""
        ...

    async def patch(
        self, resource: Resource, key: ObjectKey, body: Mapping[str, object], /
    ) -> object:
        """Change an object by a merge patch, or raise ApiError or UnreachableError."""
        ...


class EventRecorder:
    """A bounded line of occurrences and the one task that reports them, in order.

    While the server cannot be reached the line fills up; what comes when it is full is dropped.
    """

    def __init__(
        self, sink: EventSink, *, clock: Clock, metrics: Metrics, component: str = "dlctl"
    ) -> None:
        self._sink = sink
        self._correlator = Correlator(clock)
        self._dropped = metrics.dlctl_events_dropped_total
        self._component = component
        self._pending: deque[Occurrence] = deque()
        self._arrived = asyncio.Event()
        self._closing = asyncio.Event()

    def record(
        self,
        resource: Resource,
        about: ObjectMeta,
        type_: str,
        reason: str,
        message: str,
        *,
        source: str = "",
    ) -> None:
        """Tell of something that happened to an object: Normal or Warning, a CamelCase reason.

        The ``source`` is whom users know as the one who tells, if not the recorder's component.
        """
        if self._closing.is_set() or len(self._pending) >= PENDING:
            self._dropped.labels("closing" if self._closing.is_set() else "full").inc()
            return
        regarding = Regarding(resource, about.key, about.uid)
        # Cut now: what waits here, and what the correlator keeps, is the users' text.
        self._pending.append(Occurrence(regarding, type_, reason, shortened(message), source))
        self._arrived.set()

    async def run(self) -> None:
        """Report occurrences until :meth:`close`, and then those that are left.

        Those that are left when it is cancelled are counted as dropped.
        """
        try:
            await self._report_all()
        finally:
            self._dropped.labels("closing").inc(len(self._pending))
            self._pending.clear()

    async def _report_all(self) -> None:
        while True:
            while self._pending:
                await self._report(self._pending.popleft())
            if self._closing.is_set():
                return
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Take no more occurrences, and try each of those left only once more."""
        self._closing.set()
        self._arrived.set()

    async def _report(self, occurrence: Occurrence) -> None:
        try:
            report = self._correlator.report(occurrence)
            if report is None:
                self._dropped.labels("rate limited").inc()
            else:
                await self._deliver(report)
        except Exception:
            # Whatever it is, it costs one event.
            self._dropped.labels("error").inc()
            extra = {"reason": occurrence.reason, "regarding": str(occurrence.regarding.key)}
            logger.exception("event failed", extra=extra)

    async def _deliver(self, report: Report) -> None:
        for tried in range(TRIES):
            try:
                await self._send(report)
            except ApiError as error:
                # It will not like the same event better the next time.
                self._drop(report, "rejected", error)
                return
            except (UnreachableError, UnexpectedAnswerError) as error:
                # The first pause is random: many controllers lose one server at one moment.
                pause_s = RETRY_S if tried else random.uniform(0, RETRY_S)
                if tried == TRIES - 1 or await self._closed_within(pause_s):
                    self._drop(report, "unreachable", error)
                    return
            else:
                return

    async def _send(self, report: Report) -> None:
        occurrence = report.occurrence
        namespace = occurrence.regarding.key.namespace or "default"
        if report.count > 1:
            try:
                changed = {
                    "count": report.count,
                    "lastTimestamp": _timestamp(report.last),
                    "message": shortened(occurrence.message),
                }
                await self._sink.patch(EVENTS, ObjectKey(namespace, report.name), changed)
            except NotFoundError:
                # The server keeps events for an hour or so; the count goes on in a new one.
                pass
            else:
                return
        try:
            await self._sink.create(EVENTS, namespace, self._body(report, namespace))
        except AlreadyExistsError:
            # An earlier try has arrived, and only its answer was lost.
            return

    def _body(self, report: Report, namespace: str) -> Mapping[str, object]:
        occurrence = report.occurrence
        regarding = occurrence.regarding
        component = occurrence.source or self._component
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": report.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": regarding.resource.api_version,
                "kind": regarding.resource.kind,
                "namespace": regarding.key.namespace,
                "name": regarding.key.name,
                "uid": regarding.uid,
            },
            "type": occurrence.type,
            "reason": occurrence.reason,
            "message": shortened(occurrence.message),
            "count": report.count,
            "firstTimestamp": _timestamp(report.first),
            "lastTimestamp": _timestamp(report.last),
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
        }

    async def _closed_within(self, seconds: float) -> bool:
        if self._closing.is_set():
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True

    def _drop(self, report: Report, why: str, error: Exception) -> None:
        self._dropped.labels(why).inc()
        logger.warning(
            "event dropped",
            extra={
                "reason": report.occurrence.reason,
                "regarding": str(report.occurrence.regarding.key),
                logs.ERROR: str(error),
            },
        )


def _timestamp(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
