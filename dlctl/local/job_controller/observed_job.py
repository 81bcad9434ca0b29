"""A job and its pods at one time, and the two steps in which the end of a pod is counted. Pure.

Its UID is written down, then its finalizer is removed: so a crash in between loses no end, and
counts none twice.
"""

import datetime
from collections.abc import Sequence

import attrs
import msgspec

from dlctl.local.job_controller.controlled_batch_jobs import (
    ControlledBatchJob,
    ControlledBatchJobStatus,
    UncountedPods,
)
from dlctl.local.job_controller.failure_backoff import FailureRecord
from dlctl.local.job_controller.pod_state import is_active, is_failed, is_tracked, phase
from dlctl.local.node.api_types import NodePod


@attrs.frozen
class ObservedJob:
    """A job and its pods at one time; the counts include ends that its status does not have yet."""

    job: ControlledBatchJob
    pods: Sequence[NodePod]
    now: datetime.datetime
    failures: FailureRecord
    succeeded: int
    failed: int

    @property
    def active(self) -> list[NodePod]:
        return [pod for pod in self.pods if is_active(pod)]


def observe(
    job: ControlledBatchJob,
    pods: Sequence[NodePod],
    failures: FailureRecord,
    now: datetime.datetime,
) -> ObservedJob:
    """Return the job as its pods show it."""
    uncounted = job.status.uncounted_terminated_pods or UncountedPods()
    tracked = [pod for pod in pods if is_tracked(pod)]
    succeeded = [
        pod
        for pod in tracked
        if phase(pod) == "Succeeded" and pod.metadata.uid not in uncounted.succeeded
    ]
    failed = [
        pod for pod in tracked if is_failed(pod, job) and pod.metadata.uid not in uncounted.failed
    ]
    return ObservedJob(
        job,
        pods,
        now,
        failures.after(succeeded, failed),
        job.status.succeeded + len(succeeded) + len(uncounted.succeeded),
        job.status.failed + len(failed) + len(uncounted.failed),
    )


def count_released(
    status: ControlledBatchJobStatus, pods: Sequence[NodePod]
) -> ControlledBatchJobStatus:
    """Return the status with the ends counted whose pods have lost their finalizer."""
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    old = status.uncounted_terminated_pods or UncountedPods()
    left = UncountedPods(
        tuple(uid for uid in old.succeeded if uid in tracked),
        tuple(uid for uid in old.failed if uid in tracked),
    )
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(old.succeeded) - len(left.succeeded),
        failed=status.failed + len(old.failed) - len(left.failed),
        uncounted_terminated_pods=left,
    )
