"""How long a job waits after a change for further ones, so that one reconcile serves them all.

Children appear, start and go in numbers. The failure of one is processed at once.
"""

from typing import Final

from dlctl.api.meta import UID, Object
from dlctl.api.objects.pods import Pod, PodPhase, Service
from dlctl.api.objects.undecoded_object import UndecodedObject
from dlctl.informers.handlers import Change
from dlctl.informers.store import Store, owner_value, owners

# The delay for further changes that a job's own writes cause.
BATCH_PERIOD_S: Final = 0.1
# While other pods of the job are still to start, it waits longer, large jobs most of all: each of
# its reconciles looks at every pod, whether it has started or not.
STARTING_BATCH_PERIOD_S: Final = 0.5
_PODS_PER_S: Final = 500
MAX_STARTING_BATCH_PERIOD_S: Final = 5.0
MAX_BATCH_PERIOD_S: Final = 2.0
# The end of the label's key, and its values, of the pod whose start decides whether its job runs.
# MPIJobs and TrainingJobs give their workers the label as well.
_ROLE_LABEL: Final = "job-role"
_MASTER_ROLES: Final = ("master", "launcher")
# A pod that was merely assigned to a node changes nothing until its containers start, or cannot.
BOUND_BATCH_PERIOD_S: Final = 10.0
# While many pods are being deleted, the job waits until more of them are gone.
_LEAVING_PODS_PER_S: Final = 500
# The indexes of the pods that are still to start, or about to be gone, by their job.
STARTING: Final = "starting"
LEAVING: Final = "leaving"


def add_batch_indexes(pods: Store[Pod]) -> None:
    """Add the indexes that :func:`child_batch_period_s` needs: what else a job waits for."""
    pods.add_index(STARTING, lambda pod: owners(pod) if _is_starting(pod) else ())
    pods.add_index(LEAVING, lambda pod: owners(pod) if pod.metadata.is_terminating else ())


def job_batch_period_s(change: Change[Object]) -> float:
    """Return the seconds that a job waits after a change of itself."""
    # The executor itself requeues the job for the next step that its status write makes possible.
    return MAX_BATCH_PERIOD_S if _is_status_write(change) else 0.0


def child_batch_period_s(
    change: Change[Object], pods: Store[Pod], namespace: str, job: UID
) -> float:
    """Return the seconds that a job waits after a change of one of its children."""
    owner = owner_value(namespace, job)
    if _is_leaving(change):
        others = pods.count(LEAVING, owner) - (change.new is not None)
        return min(others / _LEAVING_PODS_PER_S, MAX_BATCH_PERIOD_S)
    if not _is_expected(change):
        return 0.0
    if _is_binding(change):
        return BOUND_BATCH_PERIOD_S
    if not pods.count(STARTING, owner) and not isinstance(change.new, Service):
        return BATCH_PERIOD_S
    if _is_start_of_master(change):
        return STARTING_BATCH_PERIOD_S
    known_s = pods.owned_count(namespace, job) / _PODS_PER_S
    return min(STARTING_BATCH_PERIOD_S + known_s, MAX_STARTING_BATCH_PERIOD_S)


def _is_starting(pod: Pod) -> bool:
    """Return whether the containers of a pod are still to start, and nothing holds them back."""
    is_held = pod.metadata.is_terminating or pod.is_gated
    return not is_held and pod.phase is PodPhase.PENDING


def _is_status_write(change: Change[Object]) -> bool:
    """Return whether nothing but the status has changed, which jobs have from dlctl."""
    old, new = change.old, change.new
    if old is None or new is None or new.metadata.generation is None:
        return False
    # The annotations of large jobs are not kept, so that their changes are not seen here.
    return _same_metadata(old, new) and not _same_status(old, new)


def _is_expected(change: Change[Object]) -> bool:
    """Return whether a child has appeared or starts, and none of its containers has failed."""
    old, new = change.old, change.new
    if change.initial or new is None or new.metadata.is_terminating:
        return False
    if old is not None and old.metadata.uid != new.metadata.uid:
        return False
    return not isinstance(new, Pod) or not _has_ended(new)


def _is_leaving(change: Change[Object]) -> bool:
    """Return whether a pod has begun to leave or is gone, and nothing else is new about it."""
    old, new = change.old, change.new
    if not isinstance(old, Pod):
        return False
    if not isinstance(new, Pod):
        return old.metadata.is_terminating
    if old.metadata.uid != new.metadata.uid or not new.metadata.is_terminating:
        return False
    if old.metadata.is_terminating:
        return _ended_by_itself(old) or not _ended_by_itself(new)
    # Restarts in place are counted once their pod leaves, and before it is gone.
    return not _has_restarted(new) and (_has_ended(old) or not _has_ended(new))


def _ended_by_itself(pod: Pod) -> bool:
    """Return whether a container of a terminating pod ended before anyone requested its end."""
    requested = pod.metadata.deletion_requested_at
    ends = (one.state.terminated for one in pod.container_statuses if one.state)
    times = [end.finished_at for end in ends if end is not None]
    return requested is not None and any(time is not None and time < requested for time in times)


def _is_binding(change: Change[Object]) -> bool:
    """Return whether a pod was merely assigned to a node: the start of its containers follows."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return False
    return bool(new.node_name) and _is_fresh(old) and _is_fresh(new) and _same_metadata(old, new)


def _is_start_of_master(change: Change[Object]) -> bool:
    """Return whether the master or launcher of a job runs now, for which its users wait."""
    old, new = change.old, change.new
    if not isinstance(new, Pod) or new.phase is not PodPhase.RUNNING:
        return False
    if isinstance(old, Pod) and old.phase is PodPhase.RUNNING:
        return False
    labels = (new.metadata.labels or {}).items()
    return any(key.endswith(_ROLE_LABEL) and role in _MASTER_ROLES for key, role in labels)


def _is_fresh(pod: Pod) -> bool:
    """Return whether the status of a pod shows only that it is scheduled."""
    if pod.status is None:
        return True
    if pod.container_statuses or pod.init_container_statuses:
        return False
    is_scheduled = all(
        c.type == "PodScheduled" and c.status == "True" for c in pod.status.conditions or ()
    )
    return is_scheduled and pod.phase is PodPhase.PENDING


def _same_metadata(old: Object, new: Object) -> bool:
    """Return whether a change is not of the metadata that users and controllers write."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.generation == after.generation
        and before.labels == after.labels
        and before.annotations == after.annotations
        and before.owner_references == after.owner_references
        and not after.is_terminating
    )


def _same_status(old: Object, new: Object) -> bool:
    if not isinstance(old, UndecodedObject) or not isinstance(new, UndecodedObject):
        return False
    return bytes(old.status) == bytes(new.status)


def _has_ended(pod: Pod) -> bool:
    """Return whether a container has ended or was restarted, other than a completed init one."""
    if pod.phase.finished:
        return True
    inits = (one.state.terminated for one in pod.init_container_statuses if one.state)
    failed = any(end is not None and end.exit_code for end in inits)
    return failed or any(one.has_ended for one in pod.container_statuses) or _has_restarted(pod)


def _has_restarted(pod: Pod) -> bool:
    return any(one.restart_count for one in (*pod.container_statuses, *pod.init_container_statuses))
