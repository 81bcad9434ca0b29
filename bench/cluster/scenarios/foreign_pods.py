"""Pods that belong to nobody here: what an operator's memory grows by."""

import asyncio
from typing import ClassVar, Final

import attrs

from bench.cluster.concurrency import each
from bench.cluster.manifests import plain_pod
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import TRAINING_OPERATOR, Bench, Figures
from bench.process_usage import rss_mb

_SETTLED_S: Final = 5.0


@attrs.frozen
class ForeignPods:
    """A number of plain pods, created while the operator runs and before it starts again."""

    pods: int = 10_000
    peer: ClassVar[str] = TRAINING_OPERATOR

    async def measure(self, bench: Bench, program: Program) -> Figures:
        async with namespace(bench.server) as name:

            async def create(number: int) -> None:
                await bench.server.post(f"/api/v1/namespaces/{name}/pods", plain_pod(number))

            with program.run() as operator:
                idle_mb = rss_mb(operator.pid)
                await each(range(self.pods), create)
                await asyncio.sleep(_SETTLED_S)
                grown_mb = rss_mb(operator.pid)
            with program.run() as operator:
                await asyncio.sleep(_SETTLED_S)
                started_mb = rss_mb(operator.pid)
        return {
            "idle_rss_mb": idle_mb,
            "grown_mb": grown_mb - idle_mb,
            "started_beside_mb": started_mb - idle_mb,
        }
