"""Elastic jobs built without their dialect: valid by default."""

from collections.abc import Mapping
from typing import Any, Final

from dlctl.api.job import Job, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.json_types import JSON
from dlctl.api.meta import UID, ObjectKey, Resource
from dlctl.api.policies.elasticity import AttachMode, Elasticity
from dlctl.api.status.job_status import JobStatus
from dlctl.api.status.membership import Membership
from dlctl.frameworks.horovod.job import TrainingJob

LAUNCHER: Final = Replica("launcher", 0)
WORKER: Final = Replica("worker", 0)
_RESOURCE: Final = Resource("kai.alibabacloud.com", "v1alpha1", "trainingjobs", "TrainingJob")


def pod(*containers: str, **fields: Any) -> JSON:
    names = containers or ("main",)
    return {"containers": [{"name": name, "image": "hvd:1"} for name in names], **fields}


def elastic(
    *,
    attach: AttachMode = AttachMode.SSH,
    launcher: Mapping[str, Any] | None = None,
    worker: Mapping[str, Any] | None = None,
    membership: Membership | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> TrainingJob:
    """Return the framework of a job called ``et``; ``launcher`` and ``worker`` are pod specs."""
    specs = tuple(
        ReplicaSpec(
            type=type_,
            replicas=count,
            template={"spec": given or pod()},
            container="main",
            port=22,
            indexed=type_ == "worker",
            explicit_indexes=membership.members if membership and type_ == "worker" else None,
        )
        for type_, count, given in (("launcher", 1, launcher), ("worker", 2, worker))
    )
    job = Job(
        resource=_RESOURCE,
        key=ObjectKey("ml", "et"),
        uid=UID("job-uid"),
        generation=1,
        replica_specs=specs,
        success_policy=SuccessPolicy.of_chief(LAUNCHER),
        name_prefix="et",
        runtime_id="",
        status=JobStatus(membership=membership),
        annotations=annotations or {},
        elasticity=Elasticity(attach=attach),
        spec=spec,
    )
    return TrainingJob(job)


def mutated_pod_spec(framework: TrainingJob, replica: Replica) -> JSON:
    spec = framework.job.replica_spec(replica.type)
    assert spec is not None
    return dict(framework.mutate_pod_spec(spec.template["spec"], replica))
