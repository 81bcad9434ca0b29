"""Which children of a finished job are deleted, according to its cleanPodPolicy. Pure.

``Running`` keeps a pod whose training container has exited, even if a sidecar still runs. A sidecar
that never exits delays neither the job nor its TTL: the pod is simply kept.

A job that has exceeded a limit is cleaned up in any case, as in training-operator: ``None`` then
keeps what ``Running`` does. et-operator's jobs keep their workers.
"""

from collections.abc import Iterator
from typing import Final

from dlctl.api.job import Job, Replica
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.policies.failure_policy import REACHED_MAX_RESTARTS
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.api.status.job_status import Failure
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.lifecycle.job_limits import BACKOFF_LIMIT_EXCEEDED, DEADLINE_EXCEEDED
from dlctl.reconcilers.lifecycle.starting_deadline import STARTING_DEADLINE_EXCEEDED
from dlctl.reconcilers.observe import Observed

_LIMITS: Final = frozenset(
    {
        BACKOFF_LIMIT_EXCEEDED,
        DEADLINE_EXCEEDED,
        REACHED_MAX_RESTARTS,
        STARTING_DEADLINE_EXCEEDED,
    }
)


def policy_at_end(job: Job, failure: Failure | None) -> CleanPodPolicy:
    """Return the policy for a job that has ended, given its failure."""
    policy = job.run_policy.clean_pod_policy
    if policy is CleanPodPolicy.NONE and failure is not None and _is_of_limit(job, failure):
        return CleanPodPolicy.RUNNING
    return policy


def pods_to_delete(job: Job, observed: Observed, policy: CleanPodPolicy) -> Iterator[Pod]:
    """Yield the pods to delete, except those that are already being deleted."""
    if policy is CleanPodPolicy.NONE:
        return
    ended = _ended_pods(job, observed)
    kept_after_finish = {job.child_name(r) for r in job.replicas if _is_kept_after_finish(job, r)}
    for pod in observed.remaining_pods:
        name = pod.metadata.name
        is_kept = name in ended and (policy is CleanPodPolicy.RUNNING or name in kept_after_finish)
        if not is_kept:
            yield pod


def services_to_delete(job: Job, observed: Observed, policy: CleanPodPolicy) -> Iterator[Service]:
    """Yield the services to delete: those of deleted pods, including pods that are already gone."""
    if policy is CleanPodPolicy.NONE:
        return
    present = {pod.metadata.name for pod in observed.remaining_pods}
    kept = present & _ended_pods(job, observed)
    for name, service in observed.services.items():
        if policy is CleanPodPolicy.ALL or name not in kept:
            yield service


def dependents_to_delete(job: Job, idle: DependentChanges) -> DependentChanges:
    """Return only deletions: with a launcher's Job, the files of its pods stay as they are."""
    is_kept = job.run_policy.clean_pod_policy is CleanPodPolicy.NONE
    return DependentChanges(deleted=() if is_kept else idle.deleted)


def _is_of_limit(job: Job, failure: Failure) -> bool:
    if job.elasticity is not None:
        return False
    if failure.replica:
        # With a backoff limit of 0, each failure of a replica exceeds it.
        return job.run_policy.backoff_limit == 0
    return failure.reason in _LIMITS


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
