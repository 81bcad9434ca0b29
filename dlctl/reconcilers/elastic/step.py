"""The one decision about a job's workers: who is to be on the roster now, and who to be told. Pure.

It comes before the plan for the job's children, which makes and deletes what the roster says.
"""

import attrs

from dlctl.api import conditions
from dlctl.api.elastic import WORKER, Roster, ScalerPhase
from dlctl.api.job import Job
from dlctl.api.status import JobPhase, JobStatus
from dlctl.dialects.elastic import words
from dlctl.reconcilers.elastic import flight, hosts, losses, scaling, tellings
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.roster import following
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.observe import Situation

_OVER = (JobPhase.CLEAN_UP, JobPhase.DONE)
_AT_REST = (JobPhase.SUSPENDED, JobPhase.RESTARTING)


def staffed(job: Job, roster: Roster) -> Job:
    """Return a job with the workers that its roster has, and those that come or go."""
    members = roster.present
    specs = tuple(
        attrs.evolve(spec, members=members, replicas=len(members)) if spec.type == WORKER else spec
        for spec in job.replica_specs
    )
    return attrs.evolve(job, replica_specs=specs, status=attrs.evolve(job.status, roster=roster))


def step(view: View) -> Draft:
    """Return what the job's workers need now."""
    draft = Draft(view.roster, view.now, restarts=dict(view.job.status.restarts))
    phase = view.job.status.phase
    if phase in _OVER:
        draft.roster = attrs.evolve(draft.roster, scaling=None, fleeing=None)
        for scaler in view.scalers:
            over = f"{view.job.resource.kind} {view.job.key} has ended"
            tellings.ended(draft, scaler, view.now, over)
        return draft
    _greet(view, draft)
    if phase in _AT_REST or view.job.run_policy.suspended:
        scaling.settle(view, draft)
        flight.settle(draft)
        draft.roster = draft.roster.undialled()
        return draft
    scaling.take_up(view, draft)
    view = attrs.evolve(view, roster=draft.roster)
    losses.count_losses(view, draft)
    losses.replace(attrs.evolve(view, roster=draft.roster), draft)
    if not view.launched and not draft.roster.hosts:
        draft.roster = following(draft.roster, view.asked, view.last_index)
    flight.flee(attrs.evolve(view, roster=draft.roster), draft)
    _scale(attrs.evolve(view, roster=draft.roster), draft)
    _launch(attrs.evolve(view, roster=draft.roster), draft)
    return draft


def with_draft(job: Job, draft: Draft) -> Job:
    """Return the job as the draft has it: its roster, its restarts, its conditions."""
    status: JobStatus = job.status
    stated = status.conditions
    for condition in draft.conditions:
        stated = conditions.with_condition(conditions.without(stated, condition.type), condition)
    status = attrs.evolve(status, conditions=stated, restarts=draft.restarts)
    return staffed(attrs.evolve(job, status=status), draft.roster)


def _greet(view: View, draft: Draft) -> None:
    """Take scalers on, and turn down those that nobody can do."""
    for scaler in view.scalers:
        if scaler.flaw:
            tellings.ended(draft, scaler, view.now, scaler.flaw)
        elif not scaler.status.conditions:
            tellings.created(draft, scaler, view.now)


def _scale(view: View, draft: Draft) -> None:
    change = view.roster.scaling
    if change is None:
        if view.launcher is not None and view.job.status.phase is JobPhase.RUNNING:
            scaling.begin(view, draft)
        return
    if _was_decided(view, change.uid):
        scaling.finish(view, draft, change)
        return
    scaler = view.scaler(change.uid)
    if scaler is not None and scaler.status.phase is ScalerPhase.NEW:
        # The controller ended after the job was told, and before its scaler was.
        tellings.begun(draft, scaler, view.names(change.workers), view.now)
    if change.adds:
        scaling.bring_in(view, draft, change)
    else:
        scaling.take_away(view, draft, change)


def _launch(view: View, draft: Draft) -> None:
    """Keep the hosts current, begin with some, and state how far the job has come."""
    if view.launched:
        hosts.update(view, draft)
    else:
        draft.launches = hosts.launches(view, draft)
    stated = view.job.status.conditions
    there = [one for one in view.workers.values() if one.situation is not Situation.MISSING]
    if not conditions.holds(stated, words.WORKERS_CREATED) and len(there) >= len(view.alive) > 0:
        draft.conditions.append(words.workers_created(view.job, view.now))
    if draft.launches and not conditions.holds(stated, words.WORKERS_READY):
        ready = words.workers_ready(view.job, len(draft.roster.hosts), view.now)
        draft.conditions.append(ready)
    if view.launched and not conditions.holds(stated, words.LAUNCHER_CREATED):
        draft.conditions.append(words.launcher_created(view.job, view.now))


def _was_decided(view: View, uid: str) -> bool:
    """Tell whether a scaler has its result already, and only the job has yet to know of it."""
    return any(one.uid == uid for one in view.decided)
