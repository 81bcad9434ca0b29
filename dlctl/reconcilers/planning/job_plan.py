"""The controller's central decision: what a job needs now. Pure: values in, values out.

Only idempotent changes are planned, because a plan may be applied in part, or be based on stale
stores.
"""

import datetime
from collections.abc import Sequence
from functools import partial

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.api.meta import SERVICES
from dlctl.api.policies.failure_policy import FailureAction
from dlctl.api.status.job_status import Failure, JobPhase, JobStatus
from dlctl.api.status.verdict import Attempt
from dlctl.durations import shortest_wait
from dlctl.reconcilers.avoidance.dropped_avoidance import with_dropped_avoidance
from dlctl.reconcilers.children import dependents
from dlctl.reconcilers.children.dependents import DependentChanges
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.gang_retries import GangRetry, gang_retry
from dlctl.reconcilers.events.pod_events import exit_events
from dlctl.reconcilers.failures import policy_decisions
from dlctl.reconcilers.failures.attempts import (
    recorded_attempts,
    stopped_attempts,
)
from dlctl.reconcilers.failures.drained_attempts import (
    pods_to_move,
    with_drain_end,
    with_drained_nodes,
)
from dlctl.reconcilers.failures.policy_decisions import DecidedStatus
from dlctl.reconcilers.failures.run_judge import RunJudge
from dlctl.reconcilers.kueue.finalizer import held_by_kueue
from dlctl.reconcilers.launcher_job.next_write import deletion, suspended_write
from dlctl.reconcilers.lifecycle import job_limits, job_restarts, replica_restarts
from dlctl.reconcilers.lifecycle.force_deletion import force_deletions
from dlctl.reconcilers.lifecycle.future_times import without_future_times
from dlctl.reconcilers.lifecycle.job_restart_backoff import RestartLimits
from dlctl.reconcilers.lifecycle.replica_restarts import RESTART_BACKOFF
from dlctl.reconcilers.lifecycle.starting_deadline import (
    starting_deadline_failure,
    starting_deadline_left_s,
    with_first_run,
)
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan
from dlctl.reconcilers.planning.end import idle_dependents, plan_end, plan_finished
from dlctl.reconcilers.planning.launcher_job_plan import with_launcher_job
from dlctl.reconcilers.planning.recreation_waits import without_held_children
from dlctl.reconcilers.planning.replicas import (
    missing_services,
    outdated_services,
    plan_replicas,
    pods_to_try,
    replicas_to_create,
    surplus_services,
    ungated_pods,
)
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.completion import Completion, completion
from dlctl.reconcilers.status.invalid_status import invalid_job_events
from dlctl.reconcilers.status.waiting_cause import waiting_cause, with_waiting


@attrs.frozen
class PlanSettings:
    """The controller's settings that plans need, common to all jobs."""

    restart_limits: RestartLimits = attrs.field(factory=partial(RestartLimits, RESTART_BACKOFF))
    # Seconds after the deletion timestamp; 0 disables force deletion.
    force_delete_after_s: float = 0.0


def plan_job(
    job: Job, observed: Observed, desired: Desired, now: datetime.datetime, settings: PlanSettings
) -> Plan:
    """Return what the job needs now."""
    now, limits = now.replace(microsecond=0), settings.restart_limits
    status = status_transitions.with_start(job, observed, now)
    job = attrs.evolve(job, status=without_future_times(status, now))
    planned = _Planner(job, observed, desired, now, limits).plan()
    planned = without_held_children(planned, job, observed)
    planned = with_waiting(job, planned, observed, desired.hold_reason, now, limits)
    planned = with_dropped_avoidance(planned, job, observed, now)
    planned = _with_events(planned, job, observed)
    # Also after the job's end: a pod that stays counts towards its quota.
    overdue = force_deletions(
        observed.pods_with_active_launchers,
        now,
        settings.force_delete_after_s,
        observed.children.nodes.lost,
    )
    requeue_after_s = shortest_wait(
        planned.requeue_after_s, overdue.requeue_after_s, observed.phase_wait_s
    )
    own_status = attrs.evolve(planned.status, written_by_other_operator=False)
    return attrs.evolve(
        planned, status=own_status, force_deleted_pods=overdue.pods, requeue_after_s=requeue_after_s
    )


def _with_events(planned: Plan, job: Job, observed: Observed) -> Plan:
    """Return a plan with the events about exit codes first, and about an invalid spec last."""
    notes = planned.notes
    if job.messages.emits_exit_codes and planned.status != job.status:
        notes = (*exit_events(job, planned.status, observed), *notes)
    if job.invalid_reason:
        notes = (*notes, *invalid_job_events(job, planned.status, job.invalid_reason))
    return attrs.evolve(planned, notes=notes)


@attrs.frozen
class _Planner:
    """The inputs of a plan, and the decisions that they lead to."""

    # With its last status.
    job: Job
    observed: Observed
    desired: Desired
    # Whole seconds, as in statuses.
    now: datetime.datetime
    limits: RestartLimits

    def plan(self) -> Plan:
        """Return the next status, and the changes of children that follow from it."""
        job, observed = self.job, self.observed
        if job.status.phase.has_ended:
            return plan_finished(job, observed, self.desired, self.now)
        if job.run_policy.suspended or job_restarts.is_suspension_unfinished(job, observed):
            return self._plan_suspended()
        if job.status.phase is JobPhase.RESTARTING:
            return self._plan_job_restart()
        return self._plan_active()

    def _plan_active(self) -> Plan:
        """Return the plan of a job that runs or starts; it may end or restart as a whole now."""
        job, observed, now = self.job, self.observed, self.now
        judge = RunJudge(job, now)
        status, notes = self._running_status(judge)
        last = status.last_attempt
        outcome = completion(job, observed, now, last.verdict if last else None)
        if outcome is None and not job.is_partial:
            decided = policy_decisions.decided_status(job, status, observed, now, judge)
            if decided.is_unfinished:
                return self._unfinished_plan(decided, notes)
            status, outcome, restart_note = self._judge_failure(decided)
            if restart_note is not None:
                return Plan(status, notes=(restart_note,), requeue_after_s=0)
        if outcome is None and (failure := self._exceeded_limit(status)):
            outcome, status = Completion(failure), self._without_restart(status)
        if outcome is not None:
            return plan_end(job, status, outcome, observed, self.desired, now)
        continuing = Plan(status, notes=notes)
        return self._plan_partial(continuing) if job.is_partial else self._plan_running(continuing)

    def _running_status(self, judge: RunJudge) -> tuple[JobStatus, tuple[EventNote, ...]]:
        """Return the status with what was observed, before anything is decided about it."""
        job, observed, now = self.job, self.observed, self.now
        recorded = replica_restarts.record_restarts(job.status, observed, self.limits.backoff)
        status, notes = status_transitions.running_status(
            job, observed, recorded, now, is_held=self._is_held
        )
        status = with_first_run(job, status, now)
        return attrs.evolve(status, attempts=self._attempts(judge)), notes

    @property
    def _is_held(self) -> bool:
        """Return whether no pod may be created yet; mpi-operator creates them at once."""
        return bool(self.desired.hold_reason) and self.job.launcher_job is None

    def _attempts(self, judge: RunJudge) -> tuple[Attempt, ...]:
        """Return the attempts of a job; with a failure policy, one ends before its nodes do."""
        job, observed, now = self.job, self.observed, self.now
        attempts = recorded_attempts(job, observed, now, judge)
        if attempts and attempts[-1].end_time is not None:
            return with_drained_nodes(job, attempts, observed, now)
        if pods_to_move(job, observed, now):
            # It does not run again before these are replaced.
            return with_drained_nodes(job, job.status.attempts, observed, now)
        return with_drain_end(job, attempts, observed, now)

    def _plan_running(self, planned: Plan) -> Plan:
        """Return the plan of a job that goes on, extended by the changes of all its children."""
        job, observed, desired, now = self.job, self.observed, self.desired, self.now
        running = plan_replicas(job, planned.status, observed, now, self.limits.backoff)
        running = with_launcher_job(job, running, observed)
        changed = dependents.diff_dependents(
            desired.dependents, observed.children.dependents, desired.retained_resources
        )
        created = replicas_to_create(job, running.pods, observed, desired, bool(changed))
        pods = () if self._is_held else tuple(created)
        missing = missing_services(job, observed, desired.services)
        tried = pods_to_try(pods, missing, observed)
        retry = gang_retry(job, observed, now)
        return attrs.evolve(
            running,
            pods=pods,
            notes=planned.notes,
            requeue_after_s=shortest_wait(
                running.requeue_after_s,
                self._deadline_left_s(planned.status),
                retry.requeue_after_s,
            ),
            deleted_services=surplus_services(job, observed, desired.services),
            dry_runs=tried,
            # Their services are in the first slice.
            services=tuple(sorted(missing, key=lambda replica: replica not in tried)),
            patched_services=outdated_services(job, observed, desired),
            ungated_pods=tuple(ungated_pods(job, observed)),
            dependents=changed,
            # Any other update of the PodGroup triggers the scheduler as well.
            gang_retry=GangRetry() if changed.patched else retry,
        )

    def _plan_partial(self, planned: Plan) -> Plan:
        """Return the plan of a job of which only a part is known: no child is created or deleted.

        Running pods may still end it. A failure that its policy decides about is not recorded
        before the spec is whole again: a failure that is recorded is never decided about.
        """
        job, observed = self.job, self.observed
        if policy_decisions.new_decision(job, planned.status, observed) is not None:
            planned = Plan(job.status, is_unfinished=True)
        changed = dependents.diff_dependents(self.desired.dependents, observed.children.dependents)
        return attrs.evolve(
            planned,
            dependents=DependentChanges(patched=changed.patched),
            requeue_after_s=self._deadline_left_s(planned.status),
        )

    def _exceeded_limit(self, status: JobStatus) -> Failure | None:
        """Return the failure of a job that has exceeded a limit, with what it waited for."""
        job, observed, now = self.job, self.observed, self.now
        failure = job_limits.exceeded_limit(job, status, observed, now)
        left_s = starting_deadline_left_s(job, status, now)
        if failure is not None or left_s is None or left_s > 0:
            return failure
        current = attrs.evolve(job, status=status)
        hold_reason, backoff = self.desired.hold_reason, self.limits.backoff
        cause = waiting_cause(current, observed, now, hold_reason=hold_reason, backoff=backoff)
        return starting_deadline_failure(job, cause, now)

    def _deadline_left_s(self, status: JobStatus) -> float | None:
        """Return the seconds until the next of a job's deadlines; None if it has none."""
        return shortest_wait(
            job_limits.deadline_left_s(self.job, status, self.now),
            starting_deadline_left_s(self.job, status, self.now),
        )

    def _unfinished_plan(self, decided: DecidedStatus, notes: Sequence[EventNote]) -> Plan:
        """Return the plan before all failures are decided: the pods that failed stay."""
        if wait_s := decided.evidence_wait_s:
            return Plan(self.job.status, is_unfinished=True, requeue_after_s=wait_s)
        return Plan(decided.status, notes=tuple(notes), is_unfinished=True, requeue_after_s=0)

    def _judge_failure(
        self, decided: DecidedStatus
    ) -> tuple[JobStatus, Completion | None, EventNote | None]:
        """Return the status after a new failure, and the job's end or the event of its restart."""
        job, observed, now = self.job, self.observed, self.now
        status, decision = decided.status, decided.decision
        if not job.has_failure_policy:
            if not job_restarts.should_restart(job, observed):
                return status, None, None
            if job_restarts.is_limit_reached(job):
                outcome = Completion(job_limits.backoff_limit_failure(job, now))
                return self._without_restart(status), outcome, None
            cause = job_restarts.failure_text(job, observed)
            restarting, note = job_restarts.restarting_status(job, status, cause, now)
            return restarting, None, note
        if decision is None:
            return status, None, None
        if decision.action is FailureAction.FAIL_JOB:
            failure = policy_decisions.policy_failure(job, decision, status)
            return self._without_restart(status), Completion(failure), None
        cause = policy_decisions.restart_text(decision, status, self.limits, now)
        restarting, note = job_restarts.restarting_status(
            job, status, cause, now, counts=decision.counts
        )
        return restarting, None, note

    def _without_restart(self, status: JobStatus) -> JobStatus:
        """Return the status of a job that ends: the replicas that have failed do not restart."""
        if self.job.status.phase in (JobPhase.NEW, JobPhase.SUSPENDED):
            # Its conditions are those of before its start.
            return status
        return attrs.evolve(status, conditions=self.job.status.conditions)

    def _plan_suspended(self) -> Plan:
        job, observed, desired = self.job, self.observed, self.desired
        suspended, notes = status_transitions.suspended_status(job, observed, self.now)
        attempts = stopped_attempts(suspended.attempts, self.now)
        retains_services = SERVICES in desired.retained_resources
        return Plan(
            attrs.evolve(suspended, attempts=attempts),
            notes=notes,
            deleted_pods=observed.remaining_pods,
            deleted_services=() if retains_services else tuple(observed.services.values()),
            services=missing_services(job, observed, desired.services) if retains_services else (),
            patched_services=(
                outdated_services(job, observed, desired) if retains_services else ()
            ),
            dependents=idle_dependents(observed, desired, create=observed.launcher is not None),
            launcher_job=suspended_write(job, observed.launcher) if observed.launcher else None,
        )

    def _plan_job_restart(self) -> Plan:
        """Delete all pods; those whose failure restarts the job stay until the back-off ends.

        The services stay: the next run has the same names.
        """
        job, observed = self.job, self.observed
        # Also the deadline for its start: a job that never ran may restart until then.
        if failure := self._exceeded_limit(job.status):
            outcome = Completion(failure)
            return plan_end(job, job.status, outcome, observed, self.desired, self.now)
        left_s = job_restarts.restart_left_s(job, self.limits, self.now)
        if left_s <= 0 and job_restarts.may_restart(job, observed):
            return Plan(attrs.evolve(job.status, phase=JobPhase.CREATING), requeue_after_s=0)
        kept = job_restarts.kept_pods(job, observed) if left_s > 0 else frozenset()
        launcher = observed.launcher
        if launcher is not None and launcher.newest_pod is not None:
            launcher = None if launcher.newest_pod.metadata.name in kept else launcher
        leaving = (pod for pod in observed.remaining_pods if pod.metadata.name not in kept)
        return Plan(
            job.status,
            deleted_pods=tuple(leaving),
            kueue_held_pods=tuple(held_by_kueue(observed.own_pods)),
            dependents=DependentChanges(patched=idle_dependents(observed, self.desired).patched),
            launcher_job=deletion(launcher) if launcher else None,
            requeue_after_s=shortest_wait(
                left_s if left_s > 0 else None, self._deadline_left_s(job.status)
            ),
        )
