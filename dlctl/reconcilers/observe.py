"""The state of each replica, derived from its pod. Pure: pods are passed in as values."""

import datetime
import enum
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import WORKER, Job, Replica, ReplicaSpec
from dlctl.api.meta import UID, Resource
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.dependents import DependentObject
from dlctl.api.objects.pods import ContainerStatus, Pod, PodPhase, Service
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status.job_status import Failure, JobPhase
from dlctl.api.status.membership import Membership
from dlctl.api.status.waiting import Waiting
from dlctl.reconcilers.launcher_job.launcher_state import LauncherState, launcher_state
from dlctl.reconcilers.nodes.node_states import NodeStates
from dlctl.reconcilers.recreation_backoff import RecreationWait
from dlctl.reconcilers.restart_attempts import is_of_earlier_attempt, pods_of_earlier_attempts
from dlctl.reconcilers.suspended_runs import is_discarded, predates_resumption
from dlctl.reconcilers.termination import Termination, phase_wait_s, termination


class ReplicaState(enum.Enum):
    """The state of a replica."""

    MISSING = enum.auto()
    PENDING = enum.auto()
    RUNNING = enum.auto()
    TERMINATING = enum.auto()
    SUCCEEDED = enum.auto()
    # Terminated, and a restart may succeed.
    FAILED_RETRYABLE = enum.auto()
    # Terminated, and every restart would fail in the same way.
    FAILED_PERMANENT = enum.auto()
    # Terminated or about to be; no replacement gets this name.
    RETIRED = enum.auto()


_STATE_BY_EXIT_CLASS: Final[Mapping[ExitClass, ReplicaState]] = {
    ExitClass.SUCCESS: ReplicaState.SUCCEEDED,
    ExitClass.RETRYABLE: ReplicaState.FAILED_RETRYABLE,
    ExitClass.PERMANENT: ReplicaState.FAILED_PERMANENT,
}


@attrs.frozen
class ObservedReplica:
    """One replica and its pod, if it has one."""

    replica: Replica
    state: ReplicaState
    pod: Pod | None = None
    termination: Termination | None = None
    # The kubelet is about to restart the container in the same pod.
    is_restarting: bool = False
    # How often the kubelet has restarted its container or init containers in this pod.
    restarts_in_place: int = 0
    # Seconds to wait for the pod's phase after its containers have terminated.
    phase_wait_s: float = 0.0
    # Whether the pod shows how the replica ended, but does not exist any more.
    is_gone: bool = False

    @property
    def existing_pod(self) -> Pod | None:
        return None if self.is_gone else self.pod

    @property
    def is_ready(self) -> bool:
        """Return whether its pod passes its readiness checks."""
        ready = self.pod.condition("Ready") if self.pod else None
        return ready is not None and ready.status == "True"

    @property
    def failure(self) -> Failure | None:
        """The failure by which its pod ended; None while it has not ended."""
        if self.termination is None or self.pod is None:
            return None
        return Failure(
            replica=str(self.replica),
            pod=self.pod.metadata.name,
            reason=self.termination.reason,
            message=self.termination.message,
            time=self.termination.time.replace(microsecond=0),
            exit_code=self.termination.exit_code,
            pod_reason=self.pod.status_reason,
        )


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
                one = _retired_replica(spec, replica, pod, now)
            elif launcher is not None and not job.has_own_pod(replica):
                one = _observe_launcher(job, spec, replica, launcher, now)
            elif index in completed:
                one = ObservedReplica(replica, ReplicaState.SUCCEEDED, pod)
            else:
                terminated_pod = children.terminated_pods.get(name)
                one = _observe_own_pod(job, spec, replica, pod, terminated_pod, now)
            replicas.append(one)
    surplus = (*by_name.values(), *outdated)
    return Observed(tuple(replicas), children, surplus, launcher)


def _completed_indexes(job: Job, spec: ReplicaSpec) -> Collection[int]:
    # The index of a completed elastic worker may be used again.
    return () if spec.explicit_indexes is not None else job.status.completed_indexes(spec.type)


def _observe_own_pod(
    job: Job,
    spec: ReplicaSpec,
    replica: Replica,
    pod: Pod | None,
    terminated_pod: Pod | None,
    now: datetime.datetime,
) -> ObservedReplica:
    """Return the state of a replica from its pod, and from how that was before its deletion."""
    one = ObservedReplica(replica, ReplicaState.MISSING)
    if pod is not None:
        one = observe_replica(job, spec, replica, pod, now)
    if terminated_pod is None or one.state not in (ReplicaState.MISSING, ReplicaState.TERMINATING):
        return one
    is_same = pod is None or pod.metadata.uid == terminated_pod.metadata.uid
    end = _end_before_deletion(job, spec, terminated_pod, now) if is_same else None
    if end is None:
        return one
    state = _STATE_BY_EXIT_CLASS[end.exit_class]
    if state is ReplicaState.SUCCEEDED:
        return ObservedReplica(replica, state, pod)
    before = observe_replica(job, spec, replica, terminated_pod, now)
    return attrs.evolve(
        before,
        state=state,
        pod=pod or terminated_pod,
        termination=end,
        # A phase that was awaited does not come any more.
        phase_wait_s=0.0,
        is_gone=pod is None,
    )


def _end_before_deletion(
    job: Job, spec: ReplicaSpec, pod: Pod, now: datetime.datetime
) -> Termination | None:
    """Return how a replica ended in a pod as it was before its deletion; None if it is void."""
    if spec.explicit_indexes is not None:
        # The index of an elastic worker that has ended may be used again.
        return None
    if job.status.phase is JobPhase.SUSPENDED or predates_resumption(job, pod):
        return None
    if is_of_earlier_attempt(job, pod):
        return None
    return termination(pod, spec.container, retry_policy=_retry_policy(spec, pod), now=now)


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


def _retired_replica(
    spec: ReplicaSpec, replica: Replica, pod: Pod | None, now: datetime.datetime
) -> ObservedReplica:
    end = (
        termination(pod, spec.container, retry_policy=_retry_policy(spec, pod), now=now)
        if pod
        else None
    )
    return ObservedReplica(replica, ReplicaState.RETIRED, pod, end)


def _is_retired(membership: Membership, worker: int, pod: Pod | None, container: str) -> bool:
    """Return whether a worker gets no more pods: it is dead or was removed."""
    has_left = worker in membership.leaving and (pod is None or pod.is_terminated(container))
    return has_left or worker in membership.retired


def observe_replica(
    job: Job, spec: ReplicaSpec, replica: Replica, pod: Pod, now: datetime.datetime
) -> ObservedReplica:
    """Return the state of a replica from a pod of its own."""
    discarded, status = is_discarded(job, pod), pod.container_status(spec.container)
    restarts = _restart_count(status)
    in_place = 0 if discarded else restarts + sum(map(_restart_count, pod.regular_init_statuses))
    observed = partial(ObservedReplica, replica, pod=pod, restarts_in_place=in_place)
    if not discarded and (wait_s := phase_wait_s(pod, spec.container, now)):
        return observed(state=ReplicaState.PENDING, phase_wait_s=wait_s)
    terminating = pod.metadata.is_terminating
    terminated = (
        None
        if discarded
        else termination(pod, spec.container, retry_policy=_retry_policy(spec, pod), now=now)
    )
    if terminated and (terminated.exit_class is not ExitClass.RETRYABLE or not terminating):
        state = _STATE_BY_EXIT_CLASS[terminated.exit_class]
        return observed(state=state, termination=terminated)
    if terminating:
        return observed(state=ReplicaState.TERMINATING)
    if _runs(pod, status):
        return observed(state=ReplicaState.RUNNING)
    restarting = bool(status and (restarts or _has_terminated(status)))
    return observed(state=ReplicaState.PENDING, is_restarting=restarting)


def _retry_policy(spec: ReplicaSpec, pod: Pod) -> RetryPolicy:
    """Return which failures in a pod are retried: all, if its kubelet does so against the spec.

    An edit of the restart policy reaches no pod that exists: what has been repeated there, perhaps
    long before the edit, is no end.
    """
    policy = pod.spec.restart_policy if pod.spec else None
    is_edited = spec.template["spec"].get("restartPolicy") == "Never" and policy != "Never"
    return RetryPolicy.ALL if policy and is_edited and not pod.phase.finished else spec.retry_policy


def _runs(pod: Pod, status: ContainerStatus | None) -> bool:
    if status is None:
        # The phase is all that is known: kubelets report containers, other clients may not.
        return pod.phase is PodPhase.RUNNING
    return status.state is not None and status.state.running is not None


def _restart_count(status: ContainerStatus | None) -> int:
    return (status.restart_count if status else None) or 0


def _has_terminated(status: ContainerStatus) -> bool:
    # The kubelet counts a restart when it happens, after the first back-off.
    states = (status.state, status.last_state)
    return any(state is not None and state.terminated is not None for state in states)
