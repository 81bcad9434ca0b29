"""Pods that are deleted the moment that they complete."""

import asyncio

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from tests.support.fake_pods import is_running, replica_of
from tests.support.harness import ClusterHarness


async def finish_and_delete_at_once(cluster: ClusterHarness, replica: str) -> None:
    """Let the running program of a replica exit 0, and delete its pod without a grace period."""
    pods = [pod["metadata"] for pod in cluster.objects(PODS)]
    (pod,) = [p for p in pods if str(replica_of(p["name"], "linear")) == replica]
    name, uid = pod["name"], pod["uid"]
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.node.finish(uid))
        await cluster.until(lambda: not is_running(pod_of(cluster, uid)))
        await cluster.user.delete(PODS, cluster.key(name), grace_period_s=0)


def pod_of(cluster: ClusterHarness, uid: str) -> JSON:
    return next(pod for pod in cluster.objects(PODS) if pod["metadata"]["uid"] == uid)
