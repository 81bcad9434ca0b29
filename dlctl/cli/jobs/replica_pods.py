"""The pods of a job's replicas: which is whose, and which of its containers matters. Pure."""

from collections.abc import Collection, Mapping

from dlctl.api.job import LAUNCHER_REPLICA, Job, replica_type
from dlctl.api.objects.pods import ContainerStatus, Pod
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.errors import InvalidJobError


def replica_names(job: JobSnapshot, pods: Collection[Pod]) -> Mapping[str, str]:
    """Return the names of replicas by the names of their pods, those that are gone included."""
    names = {pod.metadata.name: pod.metadata.name for pod in pods}
    if isinstance(job.job, Job):
        names |= {job.job.child_name(replica): str(replica) for replica in job.job.replicas}
        if job.job.launcher_job:
            others = (pod for pod in pods if pod.metadata.controller_uid != job.uid)
            names |= {pod.metadata.name: str(LAUNCHER_REPLICA) for pod in others}
    return names


def replica_totals(job: Job) -> str:
    """Return the types of a job's replicas with the number of each: ``master (1), worker (3)``."""
    return ", ".join(f"{spec.type} ({spec.replicas})" for spec in job.replica_specs)


def container_of(job: JobSnapshot, replica: str) -> str:
    """Return the name of the training container of a replica; empty if it is not known."""
    if isinstance(job.job, InvalidJobError):
        return ""
    spec = job.job.replica_spec(replica_type(replica))
    return spec.container if spec else ""


def main_status(job: JobSnapshot, pod: Pod, replica: str) -> ContainerStatus | None:
    """Return the status of a pod's training container."""
    known = pod.container_status(container_of(job, replica))
    return known or next(iter(pod.container_statuses), None)


def decisive_status(job: JobSnapshot, pod: Pod, replica: str) -> ContainerStatus | None:
    """Return the status of the init container that holds a pod up, or of the training container."""
    return pod.unfinished_init_status or main_status(job, pod, replica)
