"""Children of MPIJobs as mpi-operator creates them, without anything of dlctl's own."""

from collections.abc import Iterator

from dlctl.api.json_types import JSON
from dlctl.api.meta import BATCH_JOBS, MANAGED_BY_LABEL, PODS, SERVICES, Resource
from dlctl.reconcilers.children.renderer import Renderer


def operator_children(renderer: Renderer) -> Iterator[tuple[Resource, JSON]]:
    """Yield the children of a job in the order in which mpi-operator creates them."""
    job = renderer.job
    made = [(SERVICES, renderer.service(r)) for r in renderer.replicas_with_service()]
    made += [(one.resource, renderer.dependent(one)) for one in renderer.framework.dependents([])]
    made += [(one.resource, renderer.dependent(one)) for one in renderer.framework.secrets()]
    made += [(PODS, renderer.pod(r)) for r in job.replicas if job.has_own_pod(r)]
    for resource, obj in made:
        yield resource, _without_ours(obj)
    launcher = _without_ours(renderer.launcher_job(suspended=job.run_policy.suspended))
    if job.launcher_job is not None and job.launcher_job.ttl_after_finished_s is not None:
        launcher["spec"]["ttlSecondsAfterFinished"] = job.launcher_job.ttl_after_finished_s
    _without_ours(launcher["spec"]["template"])
    yield BATCH_JOBS, launcher


def _without_ours(obj: JSON) -> JSON:
    """Remove the label of dlctl, and the annotations that it adds."""
    del obj["metadata"]["labels"][MANAGED_BY_LABEL]
    obj["metadata"].pop("annotations", None)
    return obj
