"""Which ended runs the attempts of a job have recorded, and which of them end an attempt. Pure."""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from dlctl.api.job import Job, replica_type
from dlctl.api.status.verdict import Attempt, Verdict, last_verdict
from dlctl.reconcilers.failures.ended_runs import EndedRun
from dlctl.reconcilers.failures.first_cause import Judgement
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.nodes.node_states import NodeFault

# Replicas that end this soon after the first one are counted as its consequences.
_CASCADE_S: Final = 60.0


def is_recorded(run: EndedRun, attempts: Sequence[Attempt]) -> bool:
    """Return whether a run ended in one of the attempts that are over."""
    last_end = _last_end(attempts)
    if last_end is None:
        return False
    return _ended_by(run, last_end) or (run.is_ahead and _has_just_ended(run, attempts))


def new_runs(
    job: Job, runs: Sequence[EndedRun], attempts: Sequence[Attempt], judge: RunJudge
) -> list[EndedRun]:
    """Return the runs whose ends are not recorded yet, nor belong to the last attempt."""
    found = [(run, _is_new_by_time(job, run, attempts)) for run in runs]
    judge.judge([run for run, is_new in found if is_new is None])
    return [
        run
        for run, is_new in found
        if (_is_new_by_judgement(job, run, judge.of(run)) if is_new is None else is_new)
    ]


def runs_of_attempt(
    job: Job, runs: Sequence[EndedRun], first: EndedRun, judge: RunJudge
) -> list[EndedRun]:
    """Return the runs that belong to the attempt that the first of them has ended.

    Where a failure policy decides, a replica runs once in an attempt. The end of a run that started
    with the first is a consequence of it, however late: no controller may have run meanwhile. It is
    none if both show a cause of their own: replicas that restart alone go on without each other.
    """
    found = [(run, _is_late(job, run, first.time)) for run in runs if _follows(job, run, first)]
    late = [run for run, is_late in found if is_late]
    early = [run for run, is_late in found if not is_late]
    if not late or not judge.shows_cause(early) or not judge.shows_cause(late):
        return [run for run, _ in found]
    # Runs whose logs were not read are judged when the failures before them are decided.
    apart = {id(run) for run in late if judge.of(run).shows_cause or judge.of(run).is_unread}
    return [run for run, _ in found if id(run) not in apart]


def is_decided(job: Job, verdict: Verdict | None) -> bool:
    """Return whether the failure policy has decided about the replica that a verdict blames."""
    return verdict is not None and job.failure_policy_decides(replica_type(verdict.replica))


def _is_new_by_time(job: Job, run: EndedRun, attempts: Sequence[Attempt]) -> bool | None:
    """Return whether the end of a run is new by its time; None if its judgement decides that."""
    last_end, is_old = _last_end(attempts), is_recorded(run, attempts)
    if not _decides(job, run) or last_end is None or run.started_at > last_end:
        return not is_old
    if _is_counted(job, run):
        # It was seen with earlier ones, but may still have to be decided by itself.
        return None if _is_late(job, run, last_end) and not _is_named(run, attempts) else False
    if _is_known(run, attempts):
        return False
    return None if is_old and is_decided(job, last_verdict(attempts)) else not is_old


def _is_new_by_judgement(job: Job, run: EndedRun, judgement: Judgement) -> bool:
    if _is_counted(job, run):
        return judgement.shows_cause
    # The job has gone on since the decision: a failure for a reason of its own needs another one.
    return not judgement.is_consequence


def _is_counted(job: Job, run: EndedRun) -> bool:
    """Return whether the restart of the replica after this run is counted."""
    restart = job.status.restarts.get(str(run.failed_replica.replica))
    return restart is not None and restart.pod_uid == run.failed_replica.pod.metadata.uid


def _is_known(run: EndedRun, attempts: Sequence[Attempt]) -> bool:
    """Return whether the end of an uncounted run was seen when one of the attempts was recorded."""
    name, pod = str(run.failed_replica.replica), run.failed_replica.pod
    if pod.phase.finished and not pod.metadata.is_terminating:
        return False
    # While a pod is being deleted, only the verdict records it.
    return any(verdict.may_name(name) for verdict in _verdicts_since_start(run, attempts))


def _has_just_ended(run: EndedRun, attempts: Sequence[Attempt]) -> bool:
    """Return whether a run without a usable time is one that ended the last attempt.

    That attempt is over until all replicas run again.
    """
    last = attempts[-1]
    if last.end_time is None or last.verdict is None:
        return False
    return last.verdict.may_name(str(run.failed_replica.replica))


def _is_named(run: EndedRun, attempts: Sequence[Attempt]) -> bool:
    name = str(run.failed_replica.replica)
    verdicts = _verdicts_since_start(run, attempts)
    return any(name in (each.replica, *each.collateral) for each in verdicts)


def _verdicts_since_start(run: EndedRun, attempts: Sequence[Attempt]) -> Iterator[Verdict]:
    """Yield the verdicts on the attempts that ended since a run started."""
    for one in attempts:
        if one.verdict and one.end_time and one.end_time >= run.started_at:
            yield one.verdict


def _follows(job: Job, run: EndedRun, first: EndedRun) -> bool:
    if _ended_by(run, first.time):
        return True
    return run.started_at <= first.time and _decides(job, run) and _decides(job, first)


def _is_late(job: Job, run: EndedRun, end: datetime.datetime) -> bool:
    """Return whether a run went on for so long after an end that it may have ended by itself.

    On a node that is down, it ended with the node. A fault that a node shows may be older than the
    first end.
    """
    failed, policy, ended_at = run.failed_replica, job.run_policy.failure_policy, run.time
    node = failed.faulty_node
    kind = node.fault_kind if node else None
    is_lost = kind is NodeFault.DOWN and failed.termination is None
    if policy is None or kind is NodeFault.UNHEALTHY or not (policy.restarts_replicas or is_lost):
        return False
    if node is not None and kind is NodeFault.DOWN:
        ended_at = min(ended_at, node.down_since or end)
    return (ended_at - end).total_seconds() > _CASCADE_S


def _last_end(attempts: Sequence[Attempt]) -> datetime.datetime | None:
    return next((one.end_time for one in reversed(attempts) if one.end_time is not None), None)


def _decides(job: Job, run: EndedRun) -> bool:
    return job.failure_policy_decides(run.failed_replica.replica.type)


def _ended_by(run: EndedRun, end: datetime.datetime) -> bool:
    """Return whether a run ended in the attempt that ended then, or in an earlier one."""
    return run.started_at <= end and (run.time - end).total_seconds() <= _CASCADE_S
