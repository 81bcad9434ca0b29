"""Events of the node and of the scheduler about pods, for ``kubectl describe pod``.

Best effort: an event is written once per pod and text, and dropped if the server rejects it. Normal
events wait behind the work that they describe: of a burst, the first are written at once.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, NoReturn

import attrs

from dlctl.api.meta import EVENTS
from dlctl.clock import Clock, timestamp
from dlctl.controller.event_correlator import event_name
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.kube.errors import NamespaceTerminatingError, NotFoundError
from dlctl.local.node.api_types import NodePod
from dlctl.token_bucket import TokenBucket

logger = logging.getLogger(__name__)

_QUEUE_LIMIT: Final = 1000
_RECORDED_LIMIT: Final = 10_000
# Limits of normal events: a small job has all of them at once, a large one is not slowed down.
_NORMAL_BURST: Final = 30
_NORMAL_INTERVAL_S: Final = 0.2


@attrs.frozen
class _Event:
    pod: NodePod
    type: str
    reason: str
    message: str
    recorded_at: str

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.pod.metadata.uid, self.reason, self.message


def _queue() -> "asyncio.Queue[_Event]":
    return asyncio.Queue(_QUEUE_LIMIT)


@attrs.define
class PodEvents:
    """Queues of events; :meth:`run` writes them."""

    client: Client
    source: Mapping[str, str]
    clock: Clock
    _normal: "asyncio.Queue[_Event]" = attrs.field(init=False, factory=_queue)
    _warnings: "asyncio.Queue[_Event]" = attrs.field(init=False, factory=_queue)
    _recorded: set[tuple[str, str, str]] = attrs.field(init=False, factory=set)

    def record(self, pod: NodePod, reason: str, message: str) -> None:
        """Queue a normal event; never blocks."""
        self._add(self._normal, pod, "Normal", reason, message)

    def warn(self, pod: NodePod, reason: str, message: str) -> None:
        """Queue a warning; never blocks."""
        self._add(self._warnings, pod, "Warning", reason, message)

    def _add(
        self, queue: "asyncio.Queue[_Event]", pod: NodePod, type_: str, reason: str, message: str
    ) -> None:
        event = _Event(pod, type_, reason, message, timestamp(self.clock.now()))
        if event.identity in self._recorded or queue.full():
            return
        if len(self._recorded) >= _RECORDED_LIMIT:
            self._recorded.clear()
        self._recorded.add(event.identity)
        queue.put_nowait(event)

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_normal(), name="pod events: normal")
            group.create_task(self._write_warnings(), name="pod events: warnings")

    async def _write_normal(self) -> NoReturn:
        bucket = TokenBucket(_NORMAL_INTERVAL_S, _NORMAL_BURST)
        while True:
            event = await self._normal.get()
            await asyncio.sleep(bucket.reserve(self.clock.monotonic()))
            await self._try_write(event)

    async def _write_warnings(self) -> NoReturn:
        while True:
            await self._try_write(await self._warnings.get())

    async def _try_write(self, event: _Event) -> None:
        try:
            await self._write(event)
        except (NamespaceTerminatingError, NotFoundError):
            # A namespace that is being deleted, or is gone, takes no events.
            return
        except DlctlError as error:
            logger.warning(
                "event of a pod not written",
                extra={"key": str(event.pod.key), "reason": event.reason, "error": str(error)},
            )

    async def _write(self, event: _Event) -> None:
        pod = event.pod
        namespace = pod.metadata.namespace or ""
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event_name(pod.metadata.name), "namespace": namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "namespace": namespace,
                "uid": pod.metadata.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "count": 1,
            "firstTimestamp": event.recorded_at,
            "lastTimestamp": event.recorded_at,
            "source": self.source,
        }
        await self.client.create(EVENTS, namespace, body)
