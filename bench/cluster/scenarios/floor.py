"""What any operator needs to create dlctl's pods and services: no controller is in the clock.

The plain writers' own pods are smaller, have no owner, and nobody reads what becomes of them. An
operator has to do both, in one process beside the API server.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import ClassVar, Final

import attrs

from bench.cluster import plain_writers
from bench.cluster.api_server import ApiServer
from bench.cluster.concurrency import each
from bench.cluster.manifests import PYTORCH_JOBS, pytorch_job
from bench.cluster.namespaces import namespace
from bench.cluster.operators import Program
from bench.cluster.scenario import Bench, Figures
from dlctl.api.json_types import JSON
from dlctl.cli.frameworks import installed_frameworks
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.loading import job_kind
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds

_WATCHED: Final = ("pods", "services")


@attrs.frozen
class Floor:
    """A number of jobs, whose children plain writers create, and the replicas of each."""

    jobs: int = 1
    replicas: int = 1000
    peer: ClassVar[str] = ""

    async def measure(self, bench: Bench, program: Program) -> Figures:
        plain_s = await plain_writers.create_s(bench.server, self.jobs * self.replicas)
        async with namespace(bench.server) as name, AsyncExitStack() as stack:
            base = f"/api/v1/namespaces/{name}"
            for resource in _WATCHED:
                await stack.enter_async_context(
                    bench.server.watching(f"{base}/{resource}", _ignore, "application/json")
                )
            kinds = served_kinds(installed_frameworks())
            start = time.perf_counter()
            await _create(bench.server, name, kinds, self.jobs, self.replicas)
            created_s = time.perf_counter() - start
        return {"floor_ratio": created_s / plain_s, "plain_s": plain_s}


async def _create(
    server: ApiServer, name: str, kinds: Sequence[Kind], jobs: int, replicas: int
) -> None:
    base = f"/api/v1/namespaces/{name}"
    submitted: list[JSON] = []

    async def submit(number: int) -> None:
        job = pytorch_job(f"job-{number}", replicas)
        submitted.append(await server.post(PYTORCH_JOBS.format(name), job))

    async def write(pair: Sequence[tuple[str, JSON]]) -> None:
        for resource, body in pair:
            await server.post(f"{base}/{resource}", body)

    await each(range(jobs), submit)
    await each((pair for job in submitted for pair in _children(kinds, job)), write)


def _children(kinds: Sequence[Kind], manifest: JSON) -> Iterator[Sequence[tuple[str, JSON]]]:
    """Yield the service and the pod of each replica, rendered when it is their turn."""
    kind = job_kind(kinds, manifest)
    assert kind is not None
    renderer = job_renderer(kind, manifest)
    for replica in renderer.job.replicas:
        yield (("services", renderer.service(replica)), ("pods", renderer.pod(replica)))


def _ignore(_: JSON) -> None:
    """Do nothing with an object that has been decoded, which an operator would have to."""
