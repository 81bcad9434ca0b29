"""Jobs whose launcher is the pod of a batch/v1 Job, that Job, and its pods."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from dlctl.api.job import Job, Replica, ReplicaSpec, SuccessPolicy
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.launcher_job import LauncherJob
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status.job_status import JobStatus
from dlctl.reconcilers.observe import Children, Observed, observe
from tests.builders import NOW, make_job, training_job

LAUNCHER = Replica("launcher", 0)
WORKERS = (Replica("worker", 0), Replica("worker", 1))
RETRY_POLICIES = {"launcher": RetryPolicy.NONE, "worker": RetryPolicy.ALL}
OURS = {MANAGED_BY_LABEL: MANAGED_BY}
COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}


def mpi_job(
    launcher: LauncherJob | None = None, *, status: JobStatus | None = None, **policy: Any
) -> Job:
    """Return a job of a launcher and two workers; ``policy`` are fields of its run policy."""
    job = make_job(training_job("MPIJob", "pi", Launcher=1, Worker=2))
    success = SuccessPolicy(
        (LAUNCHER,), (LAUNCHER, *WORKERS), all_run=True, tolerated_types=frozenset({"worker"})
    )
    return attrs.evolve(
        job,
        replica_specs=tuple(_retried(spec) for spec in job.replica_specs),
        launcher_job=launcher or LauncherJob(),
        success_policy=success,
        status=status or job.status,
        run_policy=attrs.evolve(job.run_policy, **policy),
        shares_service=True,
    )


def _retried(spec: ReplicaSpec) -> ReplicaSpec:
    """Return a spec whose failures are retried, if they are those of workers."""
    return attrs.evolve(spec, retry_policy=RETRY_POLICIES[spec.type], gated=False)


def batch_job(
    *conditions: Mapping[str, Any],
    suspended: bool = False,
    labels: Mapping[str, str] = OURS,
    node_selector: Mapping[str, str] | None = None,
    ttl_s: int | None = None,
    backoff_limit: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    **status: Any,
) -> BatchJob:
    """Return the Job of the launcher, as the server has it."""
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": node_selector}}
    wire = {
        "metadata": {
            "name": "pi-launcher",
            "namespace": "ml",
            "uid": "uid-of-batch-job",
            "resourceVersion": "7",
            **(metadata or {}),
        },
        "spec": {
            "suspend": suspended,
            "backoffLimit": backoff_limit,
            "ttlSecondsAfterFinished": ttl_s,
            "template": template,
        },
        "status": {"conditions": conditions, **status},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=BatchJob)


def launcher_pod(
    name: str = "a",
    phase: str = "Running",
    *,
    age_s: float = 0.0,
    node: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """Return a pod of the Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "controller": True}
    created = NOW - datetime.timedelta(seconds=age_s)
    wire = {
        "metadata": {
            "name": f"pi-launcher-{name}",
            "namespace": "ml",
            "uid": f"uid-of-{name}",
            "creationTimestamp": created,
            "ownerReferences": [{**owner, "uid": "uid-of-batch-job"}],
            **(metadata or {}),
        },
        "spec": {"restartPolicy": "Never", "nodeName": node},
        "status": {"phase": phase, **status},
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=Pod)


def observed(
    job: Job,
    batch_jobs: Sequence[BatchJob] = (),
    launcher_pods: Sequence[Pod] = (),
    workers: Sequence[Pod] = (),
    now: datetime.datetime = NOW,
) -> Observed:
    children = Children(workers, launcher_jobs=batch_jobs, launcher_pods=launcher_pods)
    return observe(job, children, now)
