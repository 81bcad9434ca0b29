"""The state of one replica, derived from its pod. Pure: pods are passed in as values."""

import datetime
import enum
from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.objects.pods import ContainerStatus, Pod, PodPhase
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status.job_status import Failure, JobPhase
from dlctl.reconcilers.restart_attempts import is_of_earlier_attempt
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


def observe_own_pod(
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


def retired_replica(
    spec: ReplicaSpec, replica: Replica, pod: Pod | None, now: datetime.datetime
) -> ObservedReplica:
    end = (
        termination(pod, spec.container, retry_policy=_retry_policy(spec, pod), now=now)
        if pod
        else None
    )
    return ObservedReplica(replica, ReplicaState.RETIRED, pod, end)


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
