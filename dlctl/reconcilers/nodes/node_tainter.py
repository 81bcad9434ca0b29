"""Taints on nodes that several jobs have charged, for schedulers that pass over pods' affinities.

Only a few nodes have the taint at a time, and it is removed when their charges have expired.
"""

import logging
from collections.abc import Callable
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey
from dlctl.api.objects.nodes import CHARGED_TAINT, NODES, Node
from dlctl.controller.controller import Result
from dlctl.informers.handlers import Change
from dlctl.kube.client import Client
from dlctl.kube.errors import ConflictError, NotFoundError
from dlctl.reconcilers.nodes.charge_ledger import ChargeLedger
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.workqueue.queue import WorkQueue

logger = logging.getLogger(__name__)

# Charges expire without an event.
_CHECK_INTERVAL_S: Final = 300.0
_SYNC_INTERVAL_S: Final = 1.0
_TAINT: Final = {"key": CHARGED_TAINT, "effect": "NoSchedule"}


@attrs.frozen
class NodeTainter:
    """Adds and removes the taint of one node at a time."""

    client: Client
    ledger: ChargeLedger
    nodes: NodeTracker
    max_count: int
    # Returns whether the ledger has seen all jobs: before, taints would be removed at each start.
    is_synced: Callable[[], bool]

    async def reconcile(self, key: ObjectKey) -> Result:
        """Put the taint on a node, or remove it, as its charges say."""
        if not self.is_synced() or not self.nodes.count:
            return Result(requeue_after_s=_SYNC_INTERVAL_S)
        if self.nodes.is_gone(key.name):
            # It may be any text that a job has in its status.
            return Result()
        # Deleted nodes would take the places of others.
        charged = (one.node for one in self.ledger.avoided())
        avoided = [name for name in charged if not self.nodes.is_gone(name)]
        wanted = key.name in avoided[: self.max_count]
        try:
            node = await self.client.get(NODES, key, JSON)
            if wanted != _is_tainted(node):
                await self.client.patch(NODES, key, _patch(node, tainted=wanted))
                text = "node tainted" if wanted else "taint of a node removed"
                logger.info(text, extra={"node": key.name})
        except NotFoundError:
            return Result()
        except ConflictError as error:
            return Result(requeue=True, error=error)
        return Result(requeue_after_s=_CHECK_INTERVAL_S if key.name in avoided else None)


def enqueue_tainted(queue: WorkQueue[ObjectKey]) -> Callable[[Change[Node]], None]:
    """Return a handler that enqueues the nodes that an earlier leader has tainted."""

    def handler(change: Change[Node]) -> None:
        if change.initial and change.new and change.new.has_taint(CHARGED_TAINT):
            queue.add(change.key)

    return handler


def _taints(node: JSON) -> list[JSON]:
    return list((node.get("spec") or {}).get("taints") or ())


def _is_tainted(node: JSON) -> bool:
    return any(taint.get("key") == CHARGED_TAINT for taint in _taints(node))


def _patch(node: JSON, *, tainted: bool) -> JSON:
    """Return the merge patch of a node that nobody else has changed meanwhile."""
    others = [taint for taint in _taints(node) if taint.get("key") != CHARGED_TAINT]
    taints = [*others, _TAINT] if tainted else others
    version = node["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}
