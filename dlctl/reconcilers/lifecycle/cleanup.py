"""Which children of a finished job are deleted, according to its cleanPodPolicy. Pure.

``Running`` keeps a pod whose training container has exited, even if a sidecar still runs. A sidecar
that never exits delays neither the job nor its TTL: the pod is simply kept.
"""

from collections.abc import Iterator

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.observe import Observed


def pods_to_delete(job: Job, observed: Observed) -> Iterator[Pod]:
    """Yield the pods to delete, except those that are already being deleted."""
    policy = job.run_policy.clean_pod_policy
    if policy is CleanPodPolicy.NONE:
        return
    ended = _ended_pods(job, observed)
    kept_after_finish = {job.child_name(r) for r in job.replicas if _is_kept_after_finish(job, r)}
    for pod in observed.pods:
        name = pod.metadata.name
        is_kept = name in ended and (policy is CleanPodPolicy.RUNNING or name in kept_after_finish)
        if not pod.metadata.is_terminating and not is_kept:
            yield pod


def services_to_delete(job: Job, observed: Observed) -> Iterator[Service]:
    """Yield the services to delete: those of deleted pods, including pods that are already gone."""
    policy = job.run_policy.clean_pod_policy
    if policy is CleanPodPolicy.NONE:
        return
    present = {pod.metadata.name for pod in observed.pods if not pod.metadata.is_terminating}
    kept = present & _ended_pods(job, observed)
    for name, service in observed.services.items():
        if policy is CleanPodPolicy.ALL or name not in kept:
            yield service


def dependents_to_delete(job: Job, idle: DependentChanges) -> DependentChanges:
    """Return only deletions: with a launcher's Job, the files of its pods stay as they are."""
    is_kept = job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    return DependentChanges(deleted=() if is_kept else idle.deleted)


def _ended_pods(job: Job, observed: Observed) -> frozenset[str]:
    """Return the names of the pods whose training container has exited by itself.

    A sidecar may still run in them: its uploads must not be interrupted.
    """
    containers = {spec.type: spec.container for spec in job.replica_specs}
    ended = [pod for pod in observed.surplus_pods if pod.is_terminal]
    ended += [
        one.pod
        for one in observed.replicas
        if one.pod is not None and one.pod.is_terminated(containers[one.replica.type])
    ]
    return frozenset(pod.metadata.name for pod in ended)


def _is_kept_after_finish(job: Job, replica: Replica) -> bool:
    spec = job.replica_spec(replica.type)
    return spec is not None and spec.keep_after_finish
