"""TrainingJobs with scale requests on nodes that fall silent, drain, shut down, go and come back.

They are edited and deprived of children, too, while API server, launcher and controller fail.
"""

import asyncio
import random
from collections import Counter
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.local.apiserver.storage.stored_objects import StorageEvent, table_of
from tests.convergence.elastic_edit_chaos import MOST_IN_SPEC, Play, check_end, disturb_job
from tests.convergence.node_chaos import OPTIONS, disturb_nodes
from tests.convergence.node_chaos import Play as NodePlay
from tests.convergence.random_faults import delay_writes, inject_faults, kill_controllers
from tests.support.elastic_harness import JOBS, start_elastic_cluster
from tests.support.fake_nodes import FakeNodes

_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
_RESOURCES: Final = (
    "", "pods", "services", "nodes", "configmaps", "events",
    JOBS.group_resource, SCALE_INS.group_resource, SCALE_OUTS.group_resource,
)  # fmt: skip
# Status updates of one job in one second: more of them are a loop without a pause.
_MAX_UPDATES: Final = 40
_OPTIONS: Final = attrs.evolve(OPTIONS, scale_out_timeout_s=60.0)


@attrs.define
class Limits:
    """Follows a job: how many workers it has had at once, and how often it was updated."""

    nodes: FakeNodes
    # The UIDs of pods on nodes that drain or are silent, which are replaced before they are gone.
    leaving: set[str] = attrs.field(factory=set)
    workers: int = 0
    updates: Counter[int] = attrs.field(factory=Counter)

    def watch(self, change: StorageEvent) -> None:
        # Even if a node drains or is silent for a moment only.
        for name in (*self.nodes.closed, *self.nodes.silent):
            self.leaving.update(pod["metadata"]["uid"] for pod in self.nodes.pods(name))
        if change.table == table_of(JOBS):
            self.updates[int(self.nodes.cluster.clock.monotonic())] += 1
        if change.table == table_of(PODS):
            active = [pod for pod in self.nodes.cluster.objects(PODS) if self._is_active(pod)]
            self.workers = max(self.workers, len(active))

    def _is_active(self, pod: JSON) -> bool:
        metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
        return (
            metadata["labels"].get("training-job-role") == "worker"
            and "deletionTimestamp" not in metadata
            and phase not in ("Succeeded", "Failed")
            and metadata["uid"] not in self.leaving
        )


async def run_chaos(seed: int) -> None:
    """Disturb a job and its nodes, and check what it has in the end."""
    dice = random.Random(seed)
    async with start_elastic_cluster(_OPTIONS, gently=False) as stage:
        cluster = stage.cluster
        nodes = FakeNodes(cluster, dice)
        await nodes.add(*(f"node-{number}" for number in range(5)))
        stage.launchers.silent_nodes = nodes.silent
        limits = Limits(nodes)
        cluster.server.storage.observers.append(limits.watch)
        # The lower limit is often reached, the higher one leaves room for replacements.
        play = Play(stage, dice, max_replicas=MOST_IN_SPEC if seed % 2 else MOST_IN_SPEC + 2)
        await play.submit()
        async with asyncio.TaskGroup() as group:
            group.create_task(inject_faults(cluster, dice, _VERBS, _RESOURCES))
            group.create_task(disturb_job(play))
            group.create_task(disturb_nodes(NodePlay(cluster, dice, nodes)))
            group.create_task(delay_writes(cluster, dice))
            await cluster.kill_all()
            await kill_controllers(cluster, dice)
        await check_end(play)
        assert limits.workers <= play.max_replicas, f"{limits.workers} workers at once"
        assert max(limits.updates.values()) <= _MAX_UPDATES, limits.updates
