"""Jobs as et-operator leaves them."""

from dlctl.api.meta import (
    MANAGED_BY_LABEL,
    PODS,
    SERVICES,
)
from tests.builders import renderer_of
from tests.dialects.et_operator.manifests import elastic_job
from tests.support.elastic_harness import JOBS, ElasticHarness


async def left_by_et_operator(stage: ElasticHarness) -> None:
    """Run a job with workers 0 and 2, without dlctl's labels."""
    manifest = elastic_job(worker={"replicas": 2})
    job = await stage.cluster.submit(manifest)
    names = ["linear-worker-0", "linear-worker-2"]
    status = {
        "phase": "Running",
        "targetWorkers": names,
        "currentWorkers": names,
        "replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": 2}},
        "restartCount": 0,
        "conditions": [
            {"type": type_, "status": "True"}
            for type_ in ("Created", "WorkersCreated", "WorkersReady", "LauncherCreated", "Running")
        ],
    }
    key = stage.cluster.key()
    await stage.cluster.user.patch(JOBS, key, {"status": status}, subresource="status")
    renderer = renderer_of({**manifest, **job, "status": status})
    made = [(one.resource, renderer.dependent(one)) for one in renderer.framework.dependents([])]
    made += [(one.resource, renderer.dependent(one)) for one in renderer.framework.secrets()]
    made += [(SERVICES, renderer.service(r)) for r in renderer.replicas_with_service()]
    made += [(PODS, renderer.pod(replica)) for replica in renderer.job.replicas]
    for resource, obj in made:
        del obj["metadata"]["labels"][MANAGED_BY_LABEL]
        obj["metadata"].pop("annotations", None)
        await stage.cluster.user.create(resource, stage.cluster.namespace, obj)
    await stage.cluster.until(lambda: stage.runs("linear-launcher"))
