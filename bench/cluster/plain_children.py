"""The pods and services that dlctl would create, from clients that only create: no controller."""

from collections.abc import Iterator, Sequence

from bench.cluster.api_server import ApiServer
from bench.cluster.concurrency import WRITERS, each
from bench.cluster.manifests import PYTORCH_JOBS, pytorch_job
from dlctl.api.json_types import JSON
from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.manifests.job_renderer import job_renderer
from dlctl.cli.manifests.loading import job_kind
from dlctl.dialects.kind import Kind


async def submit(server: ApiServer, name: str, jobs: int, replicas: int) -> Sequence[JSON]:
    """Create jobs that own the children, and return them."""
    submitted: list[JSON] = []

    async def create(number: int) -> None:
        job = pytorch_job(f"job-{number}", replicas)
        submitted.append(await server.post(PYTORCH_JOBS.format(name), job))

    await each(range(jobs), create)
    return submitted


async def fill(
    server: ApiServer, name: str, jobs: Sequence[JSON], *, writers: int = WRITERS
) -> None:
    """Create the children of the jobs in their namespace."""
    kinds = installed_kinds()

    async def write(pair: Sequence[tuple[str, JSON]]) -> None:
        for resource, body in pair:
            await server.post(f"/api/v1/namespaces/{name}/{resource}", body)

    await each((pair for job in jobs for pair in _children(kinds, job)), write, at_once=writers)


def _children(kinds: Sequence[Kind], manifest: JSON) -> Iterator[Sequence[tuple[str, JSON]]]:
    """Yield the service and the pod of each replica, rendered when it is their turn."""
    kind = job_kind(kinds, manifest)
    assert kind is not None
    renderer = job_renderer(kind, manifest)
    for replica in renderer.job.replicas:
        yield (("services", renderer.service(replica)), ("pods", renderer.pod(replica)))
