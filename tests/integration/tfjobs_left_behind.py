"""TFJobs as training-operator leaves them: the job, its children and its status."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY_LABEL, PODS, SERVICES
from tests.builders import kind_of, renderer_of, training_job
from tests.support.harness import ClusterHarness
from tests.support.outcomes import KEEPS_RUNNING, Outcome

KIND = kind_of("kubeflow.org/v1", "TFJob")
RUNS: Final[Mapping[str, Sequence[Outcome]]] = {
    replica: [KEEPS_RUNNING] for replica in ("chief-0", "ps-0", "worker-0", "worker-1")
}
CREATED: Final = ("Created", True, "TFJob linear is created.")
RUNNING: Final = ("Running", True, "TFJob {ns}/linear is running.")


def tf_job(policy: str = "", name: str = "linear", **run_policy: Any) -> JSON:
    job = training_job("TFJob", name, Chief=1, PS=1, Worker=2)
    for spec in job["spec"]["tfReplicaSpecs"].values():
        spec["restartPolicy"] = policy or "Never"
    if run_policy:
        job["spec"]["runPolicy"] = run_policy
    return job


def conditions(cluster: ClusterHarness, *stated: tuple[str, bool, str]) -> list[JSON]:
    now = timestamp(cluster.clock.now())
    return [
        {
            "type": type_,
            "status": str(holds),
            "reason": f"TFJob{type_}",
            "message": message.format(ns=cluster.namespace),
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        for type_, holds, message in stated
    ]


def timestamp(time: datetime.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def counts(chief: JSON, ps: JSON, worker: JSON) -> JSON:
    return {"replicaStatuses": {"Chief": chief, "PS": ps, "Worker": worker}}


RUN: Final = counts({"active": 1}, {"active": 1}, {"active": 2})


async def left_behind(
    cluster: ClusterHarness,
    manifest: JSON,
    *stated: tuple[str, bool, str],
    outcomes: Mapping[str, Sequence[Outcome]] = RUNS,
    children: bool = True,
    **status: Any,
) -> JSON:
    """Create a job as training-operator leaves it, and wait until its pods run."""
    job = await cluster.submit(manifest, outcomes, last_replica="chief-0")
    name = job["metadata"]["name"]
    if children:
        await make_children(cluster, job)
    status["conditions"] = conditions(cluster, *stated)
    status.setdefault("startTime", timestamp(cluster.clock.now()))
    await cluster.user.patch(
        KIND.resource, cluster.key(name), {"status": status}, subresource="status"
    )
    await cluster.sync()
    return job


async def make_children(cluster: ClusterHarness, job: JSON) -> None:
    renderer = renderer_of(job)
    bodies = [(SERVICES, renderer.service(r)) for r in renderer.replicas_with_service()]
    bodies += [(PODS, renderer.pod(replica)) for replica in renderer.job.replicas]
    for resource, body in bodies:
        del body["metadata"]["labels"][MANAGED_BY_LABEL]
        await cluster.user.create(resource, cluster.namespace, body)
    await cluster.until(lambda: phases(cluster) and "Pending" not in phases(cluster))


def phases(cluster: ClusterHarness) -> list[str]:
    return [(pod.get("status") or {}).get("phase", "Pending") for pod in cluster.objects(PODS)]


def uids(cluster: ClusterHarness) -> set[str]:
    children = cluster.objects(PODS) + cluster.objects(SERVICES)
    return {child["metadata"]["uid"] for child in children}


def labelled(cluster: ClusterHarness) -> int:
    children = cluster.objects(PODS) + cluster.objects(SERVICES)
    return sum(MANAGED_BY_LABEL in child["metadata"]["labels"] for child in children)


SUCCEEDED: Final = ("Succeeded", True, "TFJob {ns}/linear successfully completed.")
STOPPED: Final = ("Running", False, "TFJob {ns}/linear is running.")
AT_END: Final = counts({"succeeded": 1}, {"succeeded": 1}, {"succeeded": 2})
