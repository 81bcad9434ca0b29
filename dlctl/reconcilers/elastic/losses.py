"""Workers that end while their job goes on, and those that take their places. Pure.

A worker that the launcher has dialled gets a successor of another name, at once the first time,
later after a back-off that is its predecessors' too. One that nobody knows yet is made again.
"""

import datetime

from dlctl.api.elastic import WORKER
from dlctl.api.job import Replica
from dlctl.api.status import Restart
from dlctl.reconcilers import restarts
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.roster import fresh
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.observe import ObservedReplica, Situation
from dlctl.reconcilers.status import Note


def count_losses(view: View, draft: Draft) -> None:
    """Take note of the workers that have ended or are about to, each once."""
    for index in view.alive:
        one = view.workers.get(index)
        if one is None or index in view.roster.leaving or not _is_lost(view, index, one):
            continue
        draft.spend(index)
        name, pod = str(one.replica), view.name(index)
        draft.notes.append(Note("Warning", "TrainingJobWorkerFailed", _farewell(pod, one)))
        # A worker that stays in the restarts counts as one that returns.
        draft.restarts.pop(name, None)
        loss = _loss(view, one)
        if _is_replaceable(view, one) and not _is_beyond_limit(view, loss):
            draft.restarts[name] = loss


def replace(view: View, draft: Draft) -> None:
    """Put successors onto the roster, as many and as soon as the policy has it."""
    for index in [i for i in draft.roster.members if i in draft.roster.spent]:
        lost = draft.restarts.get(str(Replica(WORKER, index)))
        if lost is None or _is_beyond_limit(view, lost) or _is_full(view, draft):
            continue
        wait_s = view.policy.backoff.delay_s(lost.tries - 1) if lost.tries > 1 else 0.0
        left_s = (lost.ended + datetime.timedelta(seconds=wait_s) - view.now).total_seconds()
        if wait_s and left_s > 0:
            draft.waits_s.append(left_s)
            continue
        successor = next(iter(fresh(draft.roster, 1, view.last_index)), None)
        if successor is None:
            continue
        draft.dismiss(index)
        draft.enrol(successor)
        draft.restarts[str(Replica(WORKER, successor))] = lost
        del draft.restarts[str(Replica(WORKER, index))]
        draft.notes.append(
            Note(
                "Normal",
                "TrainingJobWorkerCreated",
                f"worker {view.name(successor)} takes the place of {view.name(index)}",
            )
        )


def _is_full(view: View, draft: Draft) -> bool:
    """Tell whether as many workers as there may be have come meanwhile."""
    most = view.elasticity.most
    there = [i for i in draft.roster.present if i not in draft.roster.spent]
    return most is not None and len(there) >= most


def _is_lost(view: View, index: int, one: ObservedReplica) -> bool:
    if index in view.hosts:
        return one.situation not in (Situation.RUNNING, Situation.PENDING)
    if one.situation is Situation.LOST and one.pod is not None and one.ending is not None:
        # It is made again under its name, no more often than others are replaced.
        return _is_beyond_limit(view, _loss(view, one))
    return one.situation in (Situation.BROKEN, Situation.SUCCEEDED)


def _loss(view: View, one: ObservedReplica) -> Restart:
    """Return the restarts of a worker with its newest loss."""
    old = view.job.status.restarts.get(str(one.replica))
    return restarts.another(old, one, view.policy.backoff, view.now)


def _is_beyond_limit(view: View, loss: Restart) -> bool:
    limit = view.elasticity.replacements
    return limit is not None and loss.tries > limit


def _is_replaceable(view: View, one: ObservedReplica) -> bool:
    if one.situation is Situation.SUCCEEDED:
        return view.elasticity.replaces_done
    return view.elasticity.replaces and one.situation is not Situation.BROKEN


def _farewell(pod: str, one: ObservedReplica) -> str:
    if one.ending is None:
        return f"worker {pod} was deleted"
    return f"worker {pod} has ended: {one.ending.reason}, {one.ending.message}"
