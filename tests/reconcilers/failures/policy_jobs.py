"""Jobs with failure policies, and what became of them."""

from typing import Any

from dlctl.api.job import Job
from dlctl.api.json_types import JSON
from dlctl.api.objects.pods import Pod
from dlctl.api.status.job_status import JobPhase
from tests.builders import exited, make_job, training_job
from tests.reconcilers.failures.torch_jobs import at, failed, running

RESTART_WORKERS: JSON = {"action": "RestartReplica", "targetReplicas": ["Worker"]}
ANY_REPLICA: JSON = {"action": "RestartReplica"}
PENDING: JSON = {"state": None, "phase": "Pending"}
ENDED: JSON = {"phase": "Succeeded", "state": exited(0)}


def job_of(
    kind: str = "PyTorchJob", *rules: JSON, limit: int = 1, workers: int = 2, **fields: Any
) -> Job:
    first = {"PyTorchJob": "Master", "TFJob": "Chief"}[kind]
    manifest = training_job(kind, **{first: 1, "Worker": workers})
    policy = {"maxRestarts": limit, "rules": list(rules)}
    manifest["spec"] |= {"runPolicy": {"failurePolicy": policy}, **fields}
    for name, specs in manifest["spec"].items():
        if name.endswith("ReplicaSpecs"):
            # Of no effect but for types that the job tolerates.
            specs["Worker"]["restartPolicy"] = "ExitCode"
    return make_job(manifest)


def torch(*rules: JSON, limit: int = 1, workers: int = 2) -> Job:
    return running(job_of("PyTorchJob", *rules, limit=limit, workers=workers))


def elastic_tf(*rules: JSON, limit: int = 0) -> Job:
    """Return a running TFJob that tolerates the ends of its workers."""
    return running(job_of("TFJob", *rules, limit=limit, enableDynamicWorker=True))


def end_of(job: Job) -> tuple[JobPhase, int, int]:
    """Return the phase of a job, its restarts as a whole, and those that count."""
    return job.status.phase, job.status.job_restarts, job.status.counted_restarts


def failure_reason(job: Job) -> str:
    return job.status.failure.reason if job.status.failure else ""


def replacement(code: int, ended: float, started: float) -> JSON:
    """Return the end of a pod that replaces an earlier one."""
    created = {"uid": f"b{started}", "creationTimestamp": at(started).isoformat()}
    return {**failed(code, ended, "b", started=started), "metadata": created}


def aborted(ended: float) -> JSON:
    return failed(134, ended, f"aborted-{ended}")


def without(found: list[Pod], *names: str) -> list[Pod]:
    return [pod for pod in found if not pod.metadata.name.endswith(names)]
