"""The state of a launcher, from its Job and that Job's pods. Pure.

With a failure policy, the launcher's pod is judged like that of any other replica. Without one, its
Job decides, and the failed attempts of the launcher are merely recorded.
"""

import datetime
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import LAUNCHER, LAUNCHER_REPLICA, Job
from dlctl.api.objects.batch_jobs import BatchJob
from dlctl.api.objects.pods import Pod, PodPhase
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status.job_status import Failure
from dlctl.errors import MAX_MESSAGE_CHARS, MAX_REASON_CHARS
from dlctl.reconcilers.program_output.log_text import printable
from dlctl.reconcilers.restart_attempts import is_of_earlier_attempt
from dlctl.reconcilers.termination import Termination, termination

_BACKOFF_LIMIT_EXCEEDED: Final = "BackoffLimitExceeded"


@attrs.frozen
class LauncherState:
    """A launcher's Job and how far it is."""

    # None if it does not exist.
    batch_job: BatchJob | None = None
    running_count: int = 0
    failed_count: int = 0
    # The pods that the store shows and that have not ended, the newest last.
    active_pods: tuple[Pod, ...] = ()
    newest_pod: Pod | None = None
    # Why the Job has failed.
    failure: Failure | None = None
    # The newest failure that the pods show, and its pod: where the Job retries it.
    last_failure: Termination | None = None
    last_failed_pod: Pod | None = None
    # True if the Job belongs to an attempt of the whole job before the present one.
    is_outdated: bool = False

    @property
    def is_finished(self) -> bool:
        return self.batch_job is not None and self.batch_job.is_finished

    @property
    def is_failed_or_outdated(self) -> bool:
        """Return whether the Job has failed, or belongs to an earlier attempt."""
        return self.is_outdated or (
            self.batch_job is not None and self.batch_job.failed_condition is not None
        )

    @property
    def is_ending(self) -> bool:
        """Return whether the Job is about to fail by itself: its only launcher has ended."""
        has_retries = self.batch_job is None or self.batch_job.spec.backoff_limit != 0
        return bool(self.newest_pod) and not self.active_pods and not has_retries


def launcher_state(
    job: Job, batch_jobs: Iterable[BatchJob], pods: Sequence[Pod], now: datetime.datetime
) -> LauncherState:
    """Return the state of a job's launcher; ``pods`` are those of its batch Jobs."""
    name = job.child_name(LAUNCHER_REPLICA)
    batch_job = next((one for one in batch_jobs if one.metadata.name == name), None)
    if batch_job is None:
        return LauncherState()
    uid = batch_job.metadata.uid
    owned = sorted((pod for pod in pods if pod.metadata.controller_uid == uid), key=creation_order)
    active = [pod for pod in owned if not pod.phase.finished]
    newest = owned[-1] if owned else None
    state = LauncherState(batch_job, active_pods=tuple(active), newest_pod=newest)
    if is_of_earlier_attempt(job, batch_job):
        return attrs.evolve(state, is_outdated=True)
    state = attrs.evolve(
        state,
        running_count=0 if batch_job.is_finished else _running_count(batch_job, active),
        failed_count=batch_job.status.failed or 0,
    )
    if job.has_failure_policy:
        return state
    failures = [(end, pod) for pod in owned if (end := _pod_failure(job, pod, now))]
    last, last_pod = max(failures, key=lambda one: one[0].time, default=(None, None))
    failure = _failure(job, batch_job, owned, now)
    return attrs.evolve(state, failure=failure, last_failure=last, last_failed_pod=last_pod)


def creation_order(pod: Pod) -> tuple[float, str]:
    """Return a key that sorts pods from the oldest to the newest."""
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, pod.metadata.name)


def _running_count(batch_job: BatchJob, active: Sequence[Pod]) -> int:
    running_count = sum(pod.phase is PodPhase.RUNNING for pod in active)
    if batch_job.labels_its_pods:
        return running_count
    # Made by another operator: an adopted pod is seen to run before it is ready, but that of a
    # retry is in no store until it is adopted as well.
    status = batch_job.status
    return max(running_count, (status.active if status.ready is None else status.ready) or 0)


def _failure(
    job: Job, batch_job: BatchJob, pods: Sequence[Pod], now: datetime.datetime
) -> Failure | None:
    """Return why a launcher's Job has failed, with what its last failed pod says."""
    condition = batch_job.failed_condition
    if condition is None:
        return None
    reason = printable(condition.reason or "", MAX_REASON_CHARS) or f"{job.resource.kind}Failed"
    reported = printable(condition.message or "", MAX_MESSAGE_CHARS)
    message = reported or f"{job.resource.kind} {job.key} has failed"
    if condition.reason != _BACKOFF_LIMIT_EXCEEDED:
        return Failure("", "", reason, message, now)
    failed = [pod for pod in pods if pod.phase is PodPhase.FAILED]
    if failed:
        # mpi-operator's form, also for a pod without a reason.
        reason = f"{reason}/{printable(failed[-1].status_reason, MAX_REASON_CHARS)}"
        message = f"{message}: {_pod_message(job, failed[-1], now)}"
    elif last := job.status.restarts.get(str(LAUNCHER_REPLICA)):
        # The Job has deleted a pod that the kubelet restarted too often.
        message = f"{message}: {last.describe()}"
    return Failure("", "", reason, message, now)


def _pod_message(job: Job, pod: Pod, now: datetime.datetime) -> str:
    if pod.status and pod.status.message:
        return printable(pod.status.message, MAX_MESSAGE_CHARS)
    end = _pod_failure(job, pod, now)
    return f"pod {pod.metadata.name}: {end.message if end else 'it failed'}"


def _pod_failure(job: Job, pod: Pod, now: datetime.datetime) -> Termination | None:
    """Return how the program of a pod has failed, also if the kubelet runs it again."""
    spec = job.replica_spec(LAUNCHER)
    # Without retries of its own: the Job has them.
    end = termination(pod, spec.container if spec else "", retry_policy=RetryPolicy.NONE, now=now)
    return end if end and end.exit_class is not ExitClass.SUCCESS else None
