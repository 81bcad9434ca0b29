"""Which ended runs the attempts of a job have recorded, and which of them end an attempt. Pure."""

import datetime
from collections.abc import Sequence
from typing import Final

from dlctl.api.job import Job, replica_type
from dlctl.api.verdict import Attempt, Verdict, last_verdict
from dlctl.reconcilers.failures.ended_runs import EndedRun
from dlctl.reconcilers.failures.first_cause import first_cause, shows_cause
from dlctl.reconcilers.nodes.node_conditions import NodeFault

# Replicas that end this soon after the first one are counted as its consequences.
_CASCADE_S: Final = 60.0
# To judge one run by itself may take the reading of its output.
_MAX_JUDGED: Final = 32


def is_recorded(run: EndedRun, attempts: Sequence[Attempt]) -> bool:
    """Return whether a run ended in one of the attempts that are over."""
    last_end = _last_end(attempts)
    return last_end is not None and _ended_by(run, last_end)


def is_new(job: Job, run: EndedRun, attempts: Sequence[Attempt], now: datetime.datetime) -> bool:
    """Return whether the end of a run is not recorded yet, nor belongs to the last attempt."""
    last_end = _last_end(attempts)
    if not _decides(job, run) or last_end is None or run.started_at > last_end:
        return not is_recorded(run, attempts)
    if _is_known(job, run, attempts, now):
        return False
    if not is_recorded(run, attempts) or not is_decided(job, last_verdict(attempts)):
        return not is_recorded(run, attempts)
    # The job has gone on since the decision: what failed for a reason of its own needs another.
    return not first_cause(job, [run.member], now).is_consequence


def members_of_attempt(
    job: Job, runs: Sequence[EndedRun], first: EndedRun, now: datetime.datetime
) -> list[EndedRun]:
    """Return the runs that belong to the attempt that the first of them has ended.

    Where a failure policy decides, a replica runs once in an attempt: one that started with the
    first is its consequence, however late it ended, as while no controller ran. Unless both show a
    cause of their own: replicas that restart alone go on without each other.
    """
    found = [run for run in runs if _follows(job, run, first)]
    late = [run for run in found if _is_late(job, run, first.time)][:_MAX_JUDGED]
    if not late or not shows_cause(job, [r.member for r in found if r not in late], now):
        return found
    apart = [run for run in late if shows_cause(job, [run.member], now)]
    return [run for run in found if run not in apart]


def is_decided(job: Job, verdict: Verdict | None) -> bool:
    """Return whether the failure policy has decided about what a verdict blames."""
    return verdict is not None and job.failure_policy_decides(replica_type(verdict.replica))


def _is_known(job: Job, run: EndedRun, attempts: Sequence[Attempt], now: datetime.datetime) -> bool:
    """Return whether the end of a run was seen when one of the attempts was recorded."""
    name, pod = str(run.member.replica), run.member.pod
    restart = job.status.restarts.get(name)
    if restart is not None and restart.pod_uid == pod.metadata.uid:
        return not _is_undecided(job, run, attempts, now)
    # Of a pod that is being deleted, only the verdict remembers.
    is_counted = pod.phase.finished and not pod.metadata.is_terminating
    verdicts = [one.verdict for one in attempts if one.end_time and one.end_time >= run.started_at]
    return not is_counted and any(each and each.may_name(name) for each in verdicts)


def _is_undecided(
    job: Job, run: EndedRun, attempts: Sequence[Attempt], now: datetime.datetime
) -> bool:
    """Return whether a run was seen with earlier ones, but is still to be decided by itself."""
    last_end, name = _last_end(attempts), str(run.member.replica)
    if last_end is None or not _is_late(job, run, last_end):
        return False
    verdicts = [one.verdict for one in attempts if one.end_time and one.end_time >= run.started_at]
    is_named = any(each and name in (each.replica, *each.collateral) for each in verdicts)
    return not is_named and shows_cause(job, [run.member], now)


def _follows(job: Job, run: EndedRun, first: EndedRun) -> bool:
    if _ended_by(run, first.time):
        return True
    return run.started_at <= first.time and _decides(job, run) and _decides(job, first)


def _is_late(job: Job, run: EndedRun, end: datetime.datetime) -> bool:
    """Return whether a run went on for so long after an end that it may have ended by itself.

    On a node that is down, it ended with the node. A fault that a node shows may be older than the
    first end.
    """
    member, policy, ended_at = run.member, job.run_policy.failure_policy, run.time
    kind = member.node_fault_kind if member.node_fault else None
    is_lost = kind is NodeFault.DOWN and member.termination is None
    if policy is None or kind is NodeFault.SICK or not (policy.restarts_replicas or is_lost):
        return False
    if kind is NodeFault.DOWN:
        ended_at = min(ended_at, member.node_down_since or end)
    return (ended_at - end).total_seconds() > _CASCADE_S


def _last_end(attempts: Sequence[Attempt]) -> datetime.datetime | None:
    return next((one.end_time for one in reversed(attempts) if one.end_time is not None), None)


def _decides(job: Job, run: EndedRun) -> bool:
    return job.failure_policy_decides(run.member.replica.type)


def _ended_by(run: EndedRun, end: datetime.datetime) -> bool:
    """Return whether a run ended in the attempt that ended then, or in an earlier one."""
    return run.started_at <= end and (run.time - end).total_seconds() <= _CASCADE_S
