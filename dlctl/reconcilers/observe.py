"""The states of all replicas of a job. Pure: pods are passed in as values."""

import datetime
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import attrs

from dlctl.api.job import WORKER, Job, Replica, ReplicaSpec
from dlctl.api.meta import UID, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.pods import Pod, Service
from dlctl.api.status.membership import Membership
from dlctl.api.status.waiting import Waiting
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState, launcher_state
from dlctl.reconcilers.nodes.node_states import NodeStates
from dlctl.reconcilers.observed_replica import (
    ObservedReplica,
    ReplicaState,
    observe_own_pod,
    observe_replica,
    retired_replica,
)
from dlctl.reconcilers.recreation_backoff import RecreationWait
from dlctl.reconcilers.restart_attempts import pods_of_earlier_attempts


@attrs.frozen
class Children:
    """A job's children in the stores, and what is known of their nodes, queue and logs."""

    pods: Sequence[Pod] = ()
    services: Sequence[Service] = ()
    dependents: Mapping[Resource, Sequence[DependentObject]] = attrs.field(factory=dict)
    # Why a child could not be created recently.
    rejection_wait: Waiting | None = None
    # The Jobs of launchers, and their pods.
    launcher_jobs: Sequence[BatchJob] = ()
    launcher_pods: Sequence[Pod] = ()
    nodes: NodeStates = attrs.field(factory=NodeStates)
    # What Kueue's Workload of the job waits for.
    kueue_wait: Waiting | None = None
    # The ends of logs that were read, of the last failed run in each pod.
    logs: Mapping[UID, str] = attrs.field(factory=dict)
    # Pods that have terminated since the last plan, by name; they may be gone.
    terminated_pods: Mapping[str, Pod] = attrs.field(factory=dict)
    # Of missing children, by resource and name: others have deleted the last ones soon after their
    # creation.
    recreation_waits: Mapping[tuple[Resource, str], RecreationWait] = attrs.field(factory=dict)


@attrs.frozen
class Observed:
    """The observed state of a job's children."""

    replicas: tuple[ObservedReplica, ...]
    # The children from which the state was derived.
    children: Children = attrs.field(factory=Children)
    # Pods without a replica in the spec, left by a scale-down or by an earlier attempt.
    surplus_pods: tuple[Pod, ...] = ()
    # Where the launcher's pod belongs to a batch/v1 Job.
    launcher: LauncherState | None = None

    @cached_property
    def services(self) -> Mapping[str, Service]:
        """The services that are not being deleted, by name."""
        services = (s for s in self.children.services if not s.metadata.is_terminating)
        return {service.metadata.name: service for service in services}

    @property
    def own_pods(self) -> tuple[Pod, ...]:
        """Return the pods of the job itself, and none of its launcher's Job."""
        of_replicas = filter(None, (one.existing_pod for one in self.replicas))
        return (*filter(self.is_own, of_replicas), *self.surplus_pods)

    def is_own(self, pod: Pod) -> bool:
        """Return whether a pod is one of the job itself, and not of its launcher's Job."""
        return self.launcher is None or pod is not self.launcher.newest_pod

    @property
    def pods_with_active_launchers(self) -> tuple[Pod, ...]:
        """Return the pods of the job, and the active ones of its launcher's Job."""
        return (*self.own_pods, *(self.launcher.active_pods if self.launcher else ()))

    @property
    def pods_with_newest_launcher(self) -> tuple[Pod, ...]:
        """Return the pods of the job, also gone ones, and the newest one of its launcher's Job."""
        gone = (one.pod for one in self.replicas if one.pod is not None and one.is_gone)
        newest = self.launcher.newest_pod if self.launcher else None
        return (*self.own_pods, *gone, *([newest] if newest else ()))

    @property
    def judged_terminated_pods(self) -> Mapping[str, Pod]:
        """Return the terminated pods of the children except those whose phase is awaited."""
        awaited = {one.pod.metadata.name for one in self.replicas if one.pod and one.phase_wait_s}
        terminated = self.children.terminated_pods.items()
        return {name: pod for name, pod in terminated if name not in awaited}

    @property
    def remaining_pods(self) -> tuple[Pod, ...]:
        """Return the pods of the job itself that are not being deleted."""
        return tuple(pod for pod in self.own_pods if not pod.metadata.is_terminating)

    @property
    def present(self) -> frozenset[Replica]:
        """Return the replicas whose pods exist and are not being deleted."""
        pods = ((one.replica, one.existing_pod) for one in self.replicas)
        return frozenset(one for one, pod in pods if pod and not pod.metadata.is_terminating)

    @property
    def phase_wait_s(self) -> float | None:
        """Return the seconds until the next terminated pod is judged without its phase."""
        return min((o.phase_wait_s for o in self.replicas if o.phase_wait_s), default=None)

    @property
    def states(self) -> Mapping[Replica, ReplicaState]:
        return {one.replica: one.state for one in self.replicas}


def observe(job: Job, children: Children, now: datetime.datetime) -> Observed:
    """Return the state of each replica, and the surplus pods."""
    by_name = {pod.metadata.name: pod for pod in children.pods}
    outdated = pods_of_earlier_attempts(job, children.pods)
    for left in outdated:
        del by_name[left.metadata.name]
    membership = job.status.membership or Membership()
    launcher = None
    if job.launcher_job:
        launcher = launcher_state(job, children.launcher_jobs, children.launcher_pods, now)
    replicas = []
    for spec in job.replica_specs:
        completed = _completed_indexes(job, spec)
        for index in spec.indexes:
            replica = Replica(spec.type, index)
            name = job.child_name(replica)
            pod = by_name.pop(name, None)
            if spec.type == WORKER and _is_retired(membership, index, pod, spec.container):
                one = retired_replica(spec, replica, pod, now)
            elif launcher is not None and not job.has_own_pod(replica):
                one = _observe_launcher(job, spec, replica, launcher, now)
            elif index in completed:
                one = ObservedReplica(replica, ReplicaState.SUCCEEDED, pod)
            else:
                terminated_pod = children.terminated_pods.get(name)
                one = observe_own_pod(job, spec, replica, pod, terminated_pod, now)
            replicas.append(one)
    surplus = (*by_name.values(), *outdated)
    return Observed(tuple(replicas), children, surplus, launcher)


def _completed_indexes(job: Job, spec: ReplicaSpec) -> Collection[int]:
    # The index of a completed elastic worker may be used again.
    return () if spec.explicit_indexes is not None else job.status.completed_indexes(spec.type)


def _observe_launcher(
    job: Job,
    spec: ReplicaSpec,
    replica: Replica,
    launcher: LauncherState,
    now: datetime.datetime,
) -> ObservedReplica:
    """Return the state of a launcher from its Job, which has and replaces its pod.

    With a failure policy, its pod shows how it has ended, and the Job only whether it succeeded.
    """
    batch_job, pod = launcher.batch_job, launcher.newest_pod
    if batch_job is None or launcher.is_outdated:
        return ObservedReplica(replica, ReplicaState.MISSING)
    if job.has_failure_policy:
        is_complete = batch_job.is_complete and not batch_job.metadata.is_terminating
        if not is_complete and pod is not None:
            return observe_replica(job, spec, replica, pod, now)
        if not is_complete and (batch_job.is_finished or batch_job.metadata.is_terminating):
            return ObservedReplica(replica, ReplicaState.MISSING)
    if batch_job.is_finished:
        succeeded = launcher.failure is None
        state = ReplicaState.SUCCEEDED if succeeded else ReplicaState.FAILED_PERMANENT
        return ObservedReplica(replica, state)
    if launcher.running_count:
        return ObservedReplica(replica, ReplicaState.RUNNING)
    return ObservedReplica(replica, ReplicaState.PENDING)


def _is_retired(membership: Membership, worker: int, pod: Pod | None, container: str) -> bool:
    """Return whether a worker gets no more pods: it is dead or was removed."""
    has_left = worker in membership.leaving and (pod is None or pod.is_terminated(container))
    return has_left or worker in membership.retired
