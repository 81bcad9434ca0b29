"""The runs of a job's replicas that have ended otherwise than by success, as its pods show them."""

import datetime
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from dlctl.api.exit_codes import ExitClass
from dlctl.api.job import LAUNCHER_REPLICA, WORKER, Job, Replica
from dlctl.api.meta import UID
from dlctl.api.objects.pods import Pod, PodPhase
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.status import conditions
from dlctl.api.status.job_status import JobPhase, RestartRecord
from dlctl.clock import EPOCH
from dlctl.reconcilers.failures.failed_replica import FailedReplica
from dlctl.reconcilers.nodes.node_states import NodeStates
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ObservedReplica, ReplicaState
from dlctl.reconcilers.status.replica_conditions import is_running
from dlctl.reconcilers.status.scale_downs import is_scaled_down
from dlctl.reconcilers.suspended_runs import is_discarded
from dlctl.reconcilers.termination import Termination, termination

_FAILED: Final = (ReplicaState.FAILED_RETRYABLE, ReplicaState.FAILED_PERMANENT)
_DELETED: Final = (ReplicaState.TERMINATING, ReplicaState.RETIRED)
_SECOND: Final = datetime.timedelta(seconds=1)


@attrs.frozen
class EndedRun:
    """The end of one run of a replica: of its container, or of its pod if that was deleted."""

    failed_replica: FailedReplica
    started_at: datetime.datetime
    time: datetime.datetime
    # True if it interrupts the job; the end of a replica that the job tolerates does not.
    interrupts: bool = True
    # Another machine's clock is ahead, so that ``time`` is only that of the observation.
    is_ahead: bool = False


def ended_runs(job: Job, observed: Observed, now: datetime.datetime) -> list[EndedRun]:
    """Return the last ended run of each replica, if its pod still shows it."""
    leaving = _leaving(job)
    suspects = [one for one in observed.replicas if _may_have_ended(one)]
    suspects = [one for one in suspects if one.replica not in leaving]
    runs = [run for one in suspects if (run := _ended_run(job, one, now))]
    deleted = [one for one in suspects if _was_deleted(job, one)]
    if deleted and _has_run(job, observed):
        failed_replicas = (FailedReplica(one.replica, one.pod, None) for one in deleted if one.pod)
        runs += (_run(failed, now) for failed in failed_replicas)
    retired = {one.replica for one in suspects if one.state is ReplicaState.RETIRED}
    runs = [
        run for run in runs if run.failed_replica.replica not in retired or not _is_known(job, run)
    ]
    launcher = observed.launcher
    if launcher is not None and launcher.last_failure and launcher.last_failed_pod:
        failed = FailedReplica(LAUNCHER_REPLICA, launcher.last_failed_pod, launcher.last_failure)
        runs += [] if launcher.last_failure.is_ahead else [_run(failed, now)]
    nodes, logs = observed.children.nodes, observed.children.logs
    if runs and nodes.lost:
        runs += _on_lost_nodes(observed, now)
    return [_with_log(_with_node(run, nodes), logs) for run in runs]


def _may_have_ended(one: ObservedReplica) -> bool:
    ended_in_place = one.restarts_in_place or one.is_restarting
    return bool(one.state in _FAILED or one.state in _DELETED or ended_in_place)


def _ended_run(job: Job, one: ObservedReplica, now: datetime.datetime) -> EndedRun | None:
    end = one.termination
    if one.pod is None:
        return None
    if one.state in _FAILED or (one.state is ReplicaState.RETIRED and end is not None):
        if end is None or end.exit_class is ExitClass.SUCCESS:
            return None
        run = _run(FailedReplica(one.replica, one.pod, end), now, interrupts=_interrupts(job, one))
        return _after_restart(run, job.status.restarts.get(str(one.replica)))
    if one.state not in _DELETED:
        again = _ended_in_place(job, one, one.pod, now)
        return _run(FailedReplica(one.replica, one.pod, again), now) if again else None
    return None


def _run(failed: FailedReplica, now: datetime.datetime, *, interrupts: bool = True) -> EndedRun:
    """Return a run, which was between the creation of its pod and now, whatever its node's clock.

    Of a container that could not start, kubelets report that it started in 1970.
    """
    time = failed.time(now)
    created = min(failed.pod.metadata.creation_timestamp or EPOCH, now)
    started_at = failed.termination.started_at if failed.termination else None
    if started_at is None:
        started_at = created if failed.pod.metadata.creation_timestamp else time
    time = max(time, created).replace(microsecond=0)
    started_at = max(started_at, created).replace(microsecond=0)
    return EndedRun(failed, min(started_at, time), time, interrupts, _is_ahead(failed, now))


def _is_ahead(failed: FailedReplica, now: datetime.datetime) -> bool:
    created, end = failed.pod.metadata.creation_timestamp, failed.termination
    times = (created, None if end else failed.asked_to_end_at)
    return bool(end and end.is_ahead) or any(time > now for time in times if time is not None)


def _is_known(job: Job, run: EndedRun) -> bool:
    """Return whether an attempt names a replica whose end seems to move with the clock."""
    name, verdicts = str(run.failed_replica.replica), (one.verdict for one in job.status.attempts)
    return run.is_ahead and any(one.may_name(name) for one in verdicts if one is not None)


def _on_lost_nodes(observed: Observed, now: datetime.datetime) -> Iterator[EndedRun]:
    """Yield the replicas that still seem to run, though their nodes no longer answer."""
    for one in observed.replicas:
        if one.pod is None or one.state is not ReplicaState.RUNNING:
            continue
        lost = observed.children.nodes.lost.get(FailedReplica(one.replica, one.pod, None).node)
        if lost is not None:
            run = _run(FailedReplica(one.replica, one.pod, None), now, interrupts=False)
            yield attrs.evolve(run, time=min(lost.silent_since or now, now).replace(microsecond=0))


def _with_node(run: EndedRun, nodes: NodeStates) -> EndedRun:
    """Return the run with what is wrong with its node."""
    state = nodes.by_name.get(run.failed_replica.node)
    if state is None:
        return run
    return attrs.evolve(run, failed_replica=attrs.evolve(run.failed_replica, faulty_node=state))


def _with_log(run: EndedRun, logs: Mapping[UID, str]) -> EndedRun:
    log = logs.get(run.failed_replica.pod.metadata.uid, "")
    if not log:
        return run
    return attrs.evolve(run, failed_replica=attrs.evolve(run.failed_replica, log=log))


def _after_restart(run: EndedRun, restart: RestartRecord | None) -> EndedRun:
    """Return a run in its place: that of a replacement follows the end of its predecessor.

    Times have no fractions: both may have the same second.
    """
    if restart is None:
        return run
    if restart.pod_uid == run.failed_replica.pod.metadata.uid:
        # Its end was recorded; without a usable time in its pod, it would move on with the clock.
        time = min(run.time, restart.finished_at)
        started_at = min(run.started_at, time)
        return attrs.evolve(run, started_at=started_at, time=time, is_ahead=False)
    started_at = max(run.started_at, restart.finished_at + _SECOND)
    return attrs.evolve(run, started_at=started_at, time=max(run.time, started_at))


def _ended_in_place(
    job: Job, one: ObservedReplica, pod: Pod, now: datetime.datetime
) -> Termination | None:
    """Return the last failure of a container that the kubelet runs again in the same pod."""
    spec = job.replica_spec(one.replica.type)
    if spec is None:
        return None
    # Judged as if it were not retried, a run has ended also if another one follows.
    end = termination(pod, spec.container, retry_policy=RetryPolicy.NONE, now=now)
    if end is None or end.exit_class is ExitClass.SUCCESS:
        return None
    # The node's clock is ahead: its time is yet to come.
    return None if end.is_ahead else end


def _was_deleted(job: Job, one: ObservedReplica) -> bool:
    """Return whether another client deletes the pod of a replica."""
    if one.pod is None or one.termination is not None or is_discarded(job, one.pod):
        return False
    if one.pod.phase is PodPhase.PENDING and not one.pod.node_name:
        # It has not run, and may be one of those that dlctl replaces because of their placement.
        return False
    if one.state is ReplicaState.RETIRED:
        # Elastic jobs go on without a worker; only a disruption has a time that stays.
        return one.pod.condition("DisruptionTarget") is not None
    restart = job.status.restarts.get(str(one.replica))
    is_replaced = restart is not None and restart.pod_uid == one.pod.metadata.uid
    is_own = is_replaced or is_scaled_down(job, one.replica)
    return one.state is ReplicaState.TERMINATING and not is_own


def _has_run(job: Job, observed: Observed) -> bool:
    was_running = conditions.is_true(job.status.conditions, conditions.RUNNING)
    if job.has_failure_policy:
        # Also while one of its replicas restarts alone.
        was_running = was_running or job.status.phase is JobPhase.RUNNING
    return was_running or is_running(job, observed)


def _leaving(job: Job) -> frozenset[Replica]:
    """Return the workers that are removed from their job on purpose."""
    membership = job.status.membership
    return frozenset(Replica(WORKER, i) for i in membership.leaving) if membership else frozenset()


def _interrupts(job: Job, one: ObservedReplica) -> bool:
    """Return whether a failure ends the job or restarts a replica."""
    is_permanent = one.state is ReplicaState.FAILED_PERMANENT
    return not is_permanent or job.success_policy.requires(one.replica)
