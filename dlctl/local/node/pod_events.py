"""Warnings of the node and of the scheduler about pods, for ``kubectl describe pod``.

Best effort: a warning is written once per pod and text, and dropped if the server rejects it.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from typing import Final, NoReturn

import attrs

from dlctl.api.meta import EVENTS
from dlctl.clock import Clock, timestamp
from dlctl.errors import DlctlError
from dlctl.kube.client import Client
from dlctl.local.node.api_types import NodePod

logger = logging.getLogger(__name__)

_QUEUE_LIMIT: Final = 1000
_RECORDED_LIMIT: Final = 10_000


@attrs.define
class PodEvents:
    """A queue of warnings; :meth:`run` writes them."""

    client: Client
    source: Mapping[str, str]
    clock: Clock
    _queue: asyncio.Queue[tuple[NodePod, str, str]] = attrs.field(
        init=False, factory=lambda: asyncio.Queue(_QUEUE_LIMIT)
    )
    _recorded: set[tuple[str, str, str]] = attrs.field(init=False, factory=set)

    def warn(self, pod: NodePod, reason: str, message: str) -> None:
        """Queue a warning; never blocks."""
        warning = (pod.metadata.uid, reason, message)
        if warning in self._recorded or self._queue.full():
            return
        if len(self._recorded) >= _RECORDED_LIMIT:
            self._recorded.clear()
        self._recorded.add(warning)
        self._queue.put_nowait((pod, reason, message))

    async def run(self) -> NoReturn:
        while True:
            pod, reason, message = await self._queue.get()
            try:
                await self._write(pod, reason, message)
            except DlctlError as error:
                logger.warning(
                    "event of a pod not written",
                    extra={"key": str(pod.key), "reason": reason, "error": str(error)},
                )

    async def _write(self, pod: NodePod, reason: str, message: str) -> None:
        now = timestamp(self.clock.now())
        namespace = pod.metadata.namespace or ""
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{pod.metadata.name}.{secrets.token_hex(8)}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "namespace": namespace,
                "uid": pod.metadata.uid,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": self.source,
        }
        await self.client.create(EVENTS, namespace, body)
