"""Pods that are deleted the moment that they end."""

import asyncio

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.integration.replicas import pod_of
from tests.support.fake_pods import is_running
from tests.support.harness import ClusterHarness


async def finish_and_delete_at_once(cluster: ClusterHarness, replica: str, code: int = 0) -> None:
    """Let the running program of a replica exit, and delete its pod without a grace period."""
    metadata: JSON = pod_of(cluster, replica)["metadata"]
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.node.finish(metadata["uid"], code))
        await cluster.until(lambda: not is_running(pod_of(cluster, replica)))
        await cluster.user.delete(PODS, cluster.key(metadata["name"]), grace_period_s=0)
