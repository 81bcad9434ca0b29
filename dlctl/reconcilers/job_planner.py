"""Collects what the plans of one kind of job depend on, and has pure functions decide.

What takes long runs in a thread. Only the pure functions' exceptions concern the job's content.
"""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from dlctl.api.job import Job
from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobStatus
from dlctl.clock import Clock
from dlctl.dialects.dialect import DecodedObject
from dlctl.errors import InvalidJobError
from dlctl.reconcilers.applying.reconcile_context import ReconcileContext
from dlctl.reconcilers.avoidance.node_avoidance import NodeAvoidance, with_avoidance_event
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.existing_services import with_existing_services
from dlctl.reconcilers.children.renderer import Renderer
from dlctl.reconcilers.content_errors import ContentError, Step, wrap_content_errors
from dlctl.reconcilers.events.pod_events import PodProblems, new_pod_problems
from dlctl.reconcilers.failures.failure_logs import FailureLogs
from dlctl.reconcilers.job.cache import JobCache
from dlctl.reconcilers.job.content_error_log import ContentErrorLog
from dlctl.reconcilers.job.crd_check import CRDCheck
from dlctl.reconcilers.job.desired_children import (
    desired_children,
    fallback_children,
    partial_job,
)
from dlctl.reconcilers.job.metrics import JobMetrics
from dlctl.reconcilers.job.stores import JobStores
from dlctl.reconcilers.large_jobs.threads import planning_cost, run_step
from dlctl.reconcilers.membership.manager import MembershipManager
from dlctl.reconcilers.membership.membership_plan import MembershipPlan
from dlctl.reconcilers.membership.planner import with_current_members, with_planned_members
from dlctl.reconcilers.observe import Observed, observe
from dlctl.reconcilers.plan import Plan, with_membership_plan
from dlctl.reconcilers.planning.job_plan import PlanSettings, plan_job
from dlctl.reconcilers.planning.next_changes import StatusTiming, next_changes
from dlctl.reconcilers.planning.recreation_waits import missing_children
from dlctl.reconcilers.recreation_backoff import RecreationBackoff
from dlctl.reconcilers.status import status_transitions
from dlctl.reconcilers.status.invalid_status import invalid_plan

# The creation of more pods is interrupted to report that the job runs.
_MAX_UNINTERRUPTED_PODS: Final = 64


@attrs.frozen
class JobPlanner:
    """Observes and plans the jobs of one kind."""

    stores: JobStores
    membership: MembershipManager
    crd: CRDCheck
    metrics: JobMetrics
    content_errors: ContentErrorLog
    clock: Clock
    settings: PlanSettings
    avoidance: NodeAvoidance
    recreations: RecreationBackoff
    # None if logs are not read.
    failure_logs: FailureLogs | None

    async def observe(self, job: Job, cache: JobCache) -> tuple[Observed, float]:
        """Observe the replicas of a job; if it is elastic, those of its last membership.

        Return also how many seconds to wait for the logs of failed pods, which verdicts use.
        """
        children = self.stores.children(job.key, job.uid, cache.rejected)
        with wrap_content_errors(Step.PLANNING):
            current = with_current_members(job)
        cost = max(job.total_replicas, len(children.pods))
        now = self.clock.now()
        observed = await run_step(
            Step.PLANNING, job.key.namespace, cost, partial(observe, current, children, now)
        )
        if self.failure_logs is None:
            return observed, 0.0
        logs = await self.failure_logs.of(job, observed)
        children = attrs.evolve(observed.children, logs=logs.texts)
        return attrs.evolve(observed, children=children), logs.wait_s

    async def plan(
        self, job: Job, obj: DecodedObject, observed: Observed, cache: JobCache
    ) -> tuple[ReconcileContext, Plan]:
        """Plan what a job needs now; an invalid one of which nothing has run fails."""
        # An earlier write may have failed, and a pod of another template may have run since.
        rejection = cache.rejected.permanent_failure(job.generation)
        if rejection is not None and not job.status.is_finished:
            return self.plan_status(invalid_plan, obj, job.status, cache, str(rejection))
        with wrap_content_errors(Step.PLANNING):
            job = with_existing_services(job, observed.services)
        try:
            return await self._plan_valid(job, obj, observed, cache)
        except InvalidJobError as error:
            return self.plan_status(invalid_plan, obj, job.status, cache, str(error))

    def plan_status(
        self,
        make_plan: Callable[[Job, str, datetime.datetime], Plan],
        obj: DecodedObject,
        status: JobStatus,
        cache: JobCache,
        message: str,
    ) -> tuple[ReconcileContext, Plan]:
        """Return a plan that reports a message in the status, whatever the spec."""
        context = ReconcileContext.of_status(obj, status, cache)
        return context, make_plan(context.job, message, self.clock.now())

    def forget(self, key: ObjectKey) -> None:
        """Stop the background tasks of a job that is gone."""
        self.membership.tasks.forget(key)
        if self.failure_logs is not None:
            self.failure_logs.forget(key)

    def _with_recreation_waits(self, job: Job, observed: Observed, desired: Desired) -> Observed:
        """Return the children with the waits before missing ones are created again."""
        self.recreations.forget_lasting()
        with wrap_content_errors(Step.PLANNING):
            waits = self.recreations.waits(job.uid, missing_children(job, observed, desired))
        if not waits:
            return observed
        children = attrs.evolve(observed.children, recreation_waits=waits)
        return attrs.evolve(observed, children=children)

    async def _plan_valid(
        self, job: Job, obj: DecodedObject, observed: Observed, cache: JobCache
    ) -> tuple[ReconcileContext, Plan]:
        self._record_launcher(observed, cache)
        now = self.clock.now()
        with wrap_content_errors(Step.PLANNING):
            cost = planning_cost(job, observed)
        membership_plan, planned_job, observed = await self._plan_members(job, observed, now, cost)
        renderer = Renderer(planned_job, obj.dialect, partial(self.avoidance.avoided_by, job))
        launch = membership_plan is None or membership_plan.create_launcher
        rendered, desired = await self._desired(renderer, observed, cache, create_launcher=launch)
        observed = self._with_recreation_waits(rendered, observed, desired)
        make_plan = partial(plan_job, rendered, observed, desired, now, self.settings)
        planned = await run_step(Step.PLANNING, job.key.namespace, cost, make_plan)
        with wrap_content_errors(Step.PLANNING):
            timing = self._status_timing(obj, observed, cache, now)
            avoided = renderer.avoided_nodes if planned.pods else ()
            planned = with_avoidance_event(planned, job, observed, avoided)
            planned = with_membership_plan(planned, membership_plan)
            is_long = len(planned.pods) > _MAX_UNINTERRUPTED_PODS
            awaited = self.stores.awaited_pod(job) if is_long else None
            planned = next_changes(job, planned, timing, self.stores.pods, self.stores.services)
            has_run = status_transitions.has_run(job, planned.status, observed)
        planned, pod_problems = await self._with_pod_problems(job, planned, observed, cache)
        context = ReconcileContext(
            job,
            obj,
            cache,
            renderer,
            pod_problems=pod_problems,
            has_run=has_run,
            is_current=partial(self.stores.is_current, obj, awaited),
            is_name_taken=partial(self.stores.is_name_taken, job.key.namespace),
        )
        return context, planned

    async def _desired(
        self, renderer: Renderer, observed: Observed, cache: JobCache, *, create_launcher: bool
    ) -> tuple[Job, Desired]:
        """Return the job, partial if it cannot be rendered, and its wanted objects.

        :raises InvalidJobError: if it cannot be rendered and none of its pods has ever run.
        """
        try:
            desired = await desired_children(
                renderer, observed, cache.preexisting, create_launcher=create_launcher
            )
        except (ContentError, InvalidJobError) as error:
            if isinstance(error, ContentError):
                self.content_errors.report(cache, error)
            job = partial_job(renderer.job, observed, error)
            return job, fallback_children(renderer, observed)
        return renderer.job, desired

    async def _with_pod_problems(
        self, job: Job, plan: Plan, observed: Observed, cache: JobCache
    ) -> tuple[Plan, PodProblems | None]:
        """Return the plan with events about new problems of pods, and all problems known then."""
        if not job.messages.emits_pod_events or not plan.status.phase.is_active:
            return plan, None
        pods = observed.pods_with_active_launchers
        find = partial(new_pod_problems, pods, cache.event_dedup.seen_problems)
        notes, problems = await run_step(Step.PLANNING, job.key.namespace, len(pods), find)
        return attrs.evolve(plan, action_notes=(*plan.action_notes, *notes)), problems

    def _status_timing(
        self, obj: DecodedObject, observed: Observed, cache: JobCache, now: datetime.datetime
    ) -> StatusTiming:
        """Return when statuses are written; the first one may be deferred once."""
        has_pods = bool(observed.pods_with_active_launchers or observed.children.terminated_pods)
        may_defer = self.crd.is_confirmed and not cache.has_deferred_status and not has_pods
        cache.has_deferred_status |= may_defer
        created = obj.metadata.creation_timestamp or now
        return StatusTiming(
            job_age_s=(now - created).total_seconds(),
            since_write_s=self.clock.monotonic() - cache.status_written_s,
            may_defer_first=may_defer,
        )

    def _record_launcher(self, observed: Observed, cache: JobCache) -> None:
        """Record the Job of a launcher, whose metrics are removed with the job."""
        if observed.launcher is not None and observed.launcher.batch_job is not None:
            cache.launcher_job = observed.launcher.batch_job.key
            self.metrics.launcher_seen(cache.launcher_job)

    async def _plan_members(
        self, job: Job, observed: Observed, now: datetime.datetime, cost: int
    ) -> tuple[MembershipPlan | None, Job, Observed]:
        """Return the membership plan of an elastic job, and the job and replicas according to it.

        A thread plans if the ``cost`` is high. Other jobs are returned as they are, without a plan.
        """
        membership_plan = await self.membership.plan(job, observed, now, cost)
        with wrap_content_errors(Step.PLANNING):
            planned_job = with_planned_members(job, membership_plan)
        if membership_plan and membership_plan.membership != membership_plan.persisted:
            observe_again = partial(observe, planned_job, observed.children, now)
            observed = await run_step(Step.PLANNING, job.key.namespace, cost, observe_again)
        return membership_plan, planned_job, observed
