"""The labels of pods that say to which restart of their job they belong. Pure.

Only jobs with a failure policy have them. A pod that an earlier attempt left has an older
label: it is no replica of the present one, and keeps its name until it is gone. The same holds for
the batch/v1 Jobs of launchers.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from dlctl.api.job import Job
from dlctl.api.meta import Object
from dlctl.api.objects.pods import Pod

RESTART_ATTEMPT: Final = "dlctl.dev/restart-attempt"
RESTART_ATTEMPT_VARIABLE: Final = "DLCTL_RESTART_ATTEMPT"
_MAX_DIGITS: Final = 10


def restart_attempt_labels(job: Job) -> Mapping[str, str]:
    """Return the label of the job's pods, which is an annotation as well; empty if none."""
    if not job.has_failure_policy:
        return {}
    return {RESTART_ATTEMPT: str(job.status.job_restarts)}


def restart_environment(job: Job) -> Mapping[str, str]:
    """Return the variable with the number of the job's attempt."""
    if not job.has_failure_policy:
        return {}
    return {RESTART_ATTEMPT_VARIABLE: str(job.status.job_restarts)}


def pods_of_earlier_attempts(job: Job, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """Return the pods that belong to attempts before the present one."""
    return tuple(pod for pod in pods if is_of_earlier_attempt(job, pod))


def is_of_earlier_attempt(job: Job, child: Object) -> bool:
    """Return whether a pod, or the Job of a launcher, belongs to an attempt before the present."""
    return job.has_failure_policy and _attempt(child) < job.status.job_restarts


def _attempt(child: Object) -> float:
    """Return the attempt of a child; infinite without a label: the child is older than the policy.

    A number above the present attempt is newer than the status that was read.
    """
    label = (child.metadata.labels or {}).get(RESTART_ATTEMPT, "")
    return int(label[:_MAX_DIGITS]) if label.isdecimal() else math.inf
