"""When the failure policy of a job decides, and what the job fails with. Pure.

It decides once about each end of an attempt, in the reconcile that records the end: both are one
write of the status.
"""

import datetime
from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.job import Job, replica_type
from dlctl.api.objects.pods import Pod
from dlctl.api.policies.failure_policy import REACHED_MAX_RESTARTS
from dlctl.api.status.job_status import Failure, JobStatus
from dlctl.api.status.verdict import Attempt, Confidence, Verdict
from dlctl.reconcilers.failures.attempts import recorded_attempts
from dlctl.reconcilers.failures.policy_rules import Decision, decide
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits, restart_at
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState

# Replicas whose connections broke may end before the one that broke them. The back-off begins at
# the end of the attempt, so this delays nothing.
EVIDENCE_WAIT_S: Final = 3.0
# Where all that has ended only lost its peers, while a replica seems to run: the control plane
# takes up to 50 s to notice that a node is gone.
LOST_PEER_EVIDENCE_WAIT_S: Final = 60.0
# In one plan: each verdict takes the reading of outputs.
_MAX_DECISIONS: Final = 8


def evidence_wait_left_s(
    job: Job, attempts: Sequence[Attempt], observed: Observed, now: datetime.datetime
) -> float:
    """Return the seconds to wait for a better proof of why an attempt has just ended."""
    if not job.has_failure_policy or not _has_just_ended(job, attempts):
        return 0.0
    verdict = attempts[-1].verdict
    if verdict is None or verdict.confidence is not Confidence.LOW:
        return 0.0
    if observed.phase_wait_s is not None:
        # Another replica has ended, and only the reason why is missing.
        return observed.phase_wait_s
    pod = _blamed_pod(verdict, observed)
    ended_at = _reported_end(job, verdict, pod) if pod else None
    if ended_at is None:
        # Without a reported end, the time is always now.
        return 0.0
    evidence_wait_s = _evidence_wait_s(verdict, observed)
    left_s = evidence_wait_s - (now - ended_at).total_seconds()
    # A node's clock may be ahead.
    return left_s if 0 < left_s <= 2 * evidence_wait_s else 0.0


def _evidence_wait_s(verdict: Verdict, observed: Observed) -> float:
    if not verdict.is_consequence:
        return EVIDENCE_WAIT_S
    may_be_lost = any(one.state is ReplicaState.RUNNING for one in observed.replicas)
    return LOST_PEER_EVIDENCE_WAIT_S if may_be_lost else EVIDENCE_WAIT_S


def new_decision(job: Job, status: JobStatus, observed: Observed) -> Decision | None:
    """Return what follows from the failure that ``status`` records first; None if it has none."""
    policy, verdict = job.run_policy.failure_policy, _verdict_on_last_attempt(status)
    if policy is None or verdict is None or not _is_due(job, status, verdict, observed):
        return None
    pod = _blamed_pod(verdict, observed)
    spec = job.replica_spec(replica_type(verdict.replica))
    return decide(policy, verdict, pod, spec.container if spec else "", status.counted_restarts)


@attrs.frozen
class DecidedStatus:
    """The status after new failures, of which all but the last have restarted replicas alone."""

    status: JobStatus
    # The decision about the last one, unless it restarts a replica alone as well.
    decision: Decision | None = None
    # Seconds to wait for a better proof of one of them, before anything is done.
    evidence_wait_s: float = 0.0
    # True if there may be further failures, to be decided before anything is done.
    has_more: bool = False

    @property
    def is_unfinished(self) -> bool:
        return self.has_more or self.evidence_wait_s > 0


def decided_status(
    job: Job, status: JobStatus, observed: Observed, now: datetime.datetime, judge: RunJudge
) -> DecidedStatus:
    """Return the status after the failures that ``status`` records first, and those after them.

    Failures between which minutes lie may be seen together, as after a time without a controller.
    They are decided one after the other, as if each had been seen when it happened. Those that are
    left are decided when the status with the others is written.
    """
    current = job
    for _ in range(_MAX_DECISIONS):
        if evidence_wait_s := evidence_wait_left_s(current, status.attempts, observed, now):
            return DecidedStatus(status, evidence_wait_s=evidence_wait_s)
        decision = new_decision(current, status, observed)
        if decision is None or not decision.action.restarts_replica:
            return DecidedStatus(status, decision)
        status = attrs.evolve(status, counted_restarts=status.counted_restarts + decision.counts)
        current = attrs.evolve(job, status=status)
        attempts = recorded_attempts(current, observed, now, judge)
        if not _has_just_ended(current, attempts):
            return DecidedStatus(status, has_more=judge.has_unread)
        status = attrs.evolve(status, attempts=attempts)
    # A recorded failure is never decided again, so the last one is not recorded.
    return DecidedStatus(current.status, has_more=True)


def policy_failure(job: Job, decision: Decision, status: JobStatus) -> Failure:
    """Return the failure of a job that its policy ends."""
    policy, verdict = job.run_policy.failure_policy, _verdict_on_last_attempt(status)
    if policy is None or verdict is None:
        raise ValueError(f"no policy of {job.key} has decided")
    if decision.reason == REACHED_MAX_RESTARTS:
        maximum = policy.max_restarts
        message = f"Job {job.key.name} has failed because it has reached maxRestarts, {maximum}"
        message += decision.by_rule
        return Failure("", "", decision.reason, message, verdict.time)
    return Failure(
        replica=verdict.replica,
        pod=verdict.pod,
        reason=decision.reason,
        message=verdict.message + decision.by_rule,
        time=verdict.time,
        exit_code=verdict.exit_code,
    )


def restart_text(
    decision: Decision, status: JobStatus, limits: RestartLimits, now: datetime.datetime
) -> str:
    """Return why a job restarts, and when, if that is not at once."""
    verdict, due = _verdict_on_last_attempt(status), restart_at(status.attempts, limits)
    text = (verdict.describe() if verdict else "it has failed") + decision.by_rule
    return f"{text}; not before {due:%Y-%m-%dT%H:%M:%SZ}" if due and due > now else text


def _blamed_pod(verdict: Verdict, observed: Observed) -> Pod | None:
    return next(
        (pod for pod in observed.pods_with_newest_launcher if pod.metadata.name == verdict.pod),
        None,
    )


def _reported_end(job: Job, verdict: Verdict, pod: Pod) -> datetime.datetime | None:
    """Return when the kubelet saw the program end; None if it reports no time."""
    spec = job.replica_spec(replica_type(verdict.replica))
    terminated = pod.terminated(spec.container) if spec else None
    return terminated.finished_at if terminated else None


def _verdict_on_last_attempt(status: JobStatus) -> Verdict | None:
    last = status.last_attempt
    return last.verdict if last and last.end_time else None


def _is_due(job: Job, status: JobStatus, verdict: Verdict, observed: Observed) -> bool:
    """Return whether a failure is recorded now that the policy decides about.

    It is decided by the verdict on its attempt, which may be one on a replica whose own end the job
    tolerates, as long as it has taken along another one.
    """
    is_first = _has_just_ended(job, status.attempts)
    before = None if is_first else _verdict_on_last_attempt(job.status)
    if before is not None and not _is_tolerated(job, before):
        return False
    names = {verdict.replica, *verdict.collateral}
    names -= {before.replica, *before.collateral} if before else set()
    return any(map(job.failure_policy_decides, map(replica_type, names))) or any(
        one.state is ReplicaState.FAILED_RETRYABLE
        and job.failure_policy_decides(one.replica.type)
        and job.status.restarts.get(str(one.replica)) != status.restarts.get(str(one.replica))
        for one in observed.replicas
    )


def _is_tolerated(job: Job, verdict: Verdict) -> bool:
    return bool(verdict.replica) and not job.failure_policy_decides(replica_type(verdict.replica))


def _has_just_ended(job: Job, attempts: Sequence[Attempt]) -> bool:
    """Return whether the last attempt has an end that is not yet recorded."""
    if not attempts or attempts[-1].end_time is None:
        return False
    before = job.status.last_attempt
    is_recorded = before is not None and before.end_time is not None
    return not is_recorded or (before is not None and before.number != attempts[-1].number)
