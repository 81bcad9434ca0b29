"""What any operator needs for dlctl's pods and services: no controller is in the clock.

The plain writers' own pods are smaller, have no owner, and nobody reads what becomes of them. An
operator has to do both, in one process beside the API server.
"""

import time
from contextlib import AsyncExitStack
from typing import ClassVar

import attrs

from bench.cluster import plain_children, plain_writers
from bench.cluster.api_server import METADATA_ONLY
from bench.cluster.manifests import RUNNING_PODS
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures, ratio
from bench.cluster.seen import Seen
from dlctl.api.json_types import JSON


@attrs.frozen
class Floor:
    """A number of jobs, whose children plain writers create, and the replicas of each."""

    jobs: int = 1
    replicas: int = 1000
    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        plain_s = await plain_writers.create_s(bench.server, self.jobs * self.replicas)
        running = Seen()
        async with namespace(bench.server) as name, AsyncExitStack() as stack:
            base = f"/api/v1/namespaces/{name}"
            for resource, on_object, accept in (
                ("pods", _ignore, "application/json"),
                ("services", _ignore, "application/json"),
                (RUNNING_PODS, running.add, METADATA_ONLY),
            ):
                await stack.enter_async_context(
                    bench.server.watching(f"{base}/{resource}", on_object, accept)
                )
            start = time.perf_counter()
            jobs = await plain_children.submit(bench.server, name, self.jobs, self.replicas)
            await plain_children.fill(bench.server, name, jobs)
            created_s = time.perf_counter() - start
            running_s = await running.complete_s(self.jobs * self.replicas, start)
        return {
            "floor_ratio": created_s / plain_s,
            "floor_running_ratio": ratio(running_s, plain_s),
            "plain_s": plain_s,
        }


def _ignore(_: JSON) -> None:
    """Do nothing with an object that has been decoded, which an operator would have to."""
