"""Which pods belong to a run of their job that a suspension has ended: its outcome is void. Pure.

A suspension does not change the restart attempt, so the pods' labels do not show it.
"""

from dlctl.api.job import Job
from dlctl.api.objects.pods import Pod
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase


def is_discarded(job: Job, pod: Pod) -> bool:
    """Return whether a pod was deleted by a suspension of its job: its outcome does not count."""
    deletion_requested, since = pod.metadata.deletion_requested_at, job.status.start_time
    if deletion_requested is None or since is None:
        return False
    return job.status.phase is JobPhase.SUSPENDED or deletion_requested < since


def predates_resumption(job: Job, pod: Pod) -> bool:
    """Return whether a pod was created before its job was last resumed, if it ever was."""
    created, since = pod.metadata.creation_timestamp, job.status.start_time
    was_suspended = conditions.find(job.status.conditions, conditions.SUSPENDED) is not None
    return was_suspended and created is not None and since is not None and created < since
