"""Who is in the launcher's host file: workers that answer, seen from the launcher. Pure.

A host that is listed before its name resolves and its sshd answers is given up by launchers, and
may take the training with it.
"""

import datetime
from collections.abc import Collection
from typing import Final

from dlctl.api.elastic import AttachMode, Roster
from dlctl.dialects.elastic import words
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.errands import Deliver, Probe
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.observe import Situation
from dlctl.reconcilers.status import Note

_TOLD: Final = 3
# So long a late worker waits for others after it has become ready.
GATHER_S: Final = 5.0


def answering(view: View, draft: Draft, workers: Collection[int]) -> frozenset[int]:
    """Return those of the workers that the launcher can reach; it is asked for that.

    One whose node is about to go is not worth listing.
    """
    ready = _ready(view, workers)
    if not ready or view.launcher is None:
        return frozenset()
    if view.elasticity.attach is AttachMode.KUBEXEC:
        # The API server takes commands to each pod that runs.
        return ready
    names = {view.name(index): index for index in ready}
    errand = Probe(view.launcher, frozenset(names))
    draft.wanted.add(errand)
    outcome = view.outcomes.get(errand)
    if outcome is None:
        return frozenset()
    found = frozenset(names[n] for n in outcome.result.answering) if outcome.result else frozenset()
    if found != ready:
        draft.again.add(errand)
    return found


def is_being_asked(view: View, workers: Collection[int]) -> bool:
    """Tell whether the launcher has yet to say which of the workers it can reach."""
    ready = _ready(view, workers)
    if not ready or view.launcher is None or view.elasticity.attach is AttachMode.KUBEXEC:
        return False
    return _probe(view, ready) not in view.outcomes


def silence(view: View, workers: Collection[int]) -> str:
    """Say why workers do not answer, as far as the launcher was asked."""
    errand = _probe(view, _ready(view, workers))
    outcome = view.outcomes.get(errand) if errand else None
    reasons = outcome.result.reasons if outcome and outcome.result else {}
    waiting = [view.name(i) for i in sorted(workers) if not view.is_ready(i)]
    said = [f"{name} is not ready" for name in waiting]
    said += [f"{name} does not answer: {reason}" for name, reason in sorted(reasons.items())]
    if outcome and outcome.error:
        said.append(outcome.error)
    if view.launcher is None:
        said.append("the launcher does not run")
    return "; ".join(said[:_TOLD])


def update(view: View, draft: Draft) -> None:
    """Keep the host file of a launcher that runs at what holds, and have it delivered."""
    present = set(view.roster.present) - view.roster.spent
    kept = {i for i in view.roster.hosts if i in present and not _goes(view, i)}
    waiting = [i for i in view.alive if i not in kept and i not in view.roster.leaving]
    listed = kept | _gathered(view, draft, waiting)
    draft.list_hosts(*listed, *_indispensable(view, draft, listed))
    if view.launcher is not None:
        errand = delivery(view, draft.roster)
        if errand is not None:
            draft.wanted.add(errand)
            outcome = view.outcomes.get(errand)
            if outcome is not None and outcome.error:
                draft.again.add(errand)
                note = Note("Warning", "TrainingJobHostsNotDelivered", outcome.error)
                draft.notes.append(note)


def _gathered(view: View, draft: Draft, waiting: Collection[int]) -> frozenset[int]:
    """Return those of the late workers to list now.

    Each delivery interrupts the training, so they wait a moment for others that are coming.
    """
    found = answering(view, draft, waiting)
    coming = [i for i in waiting if i not in found and not view.is_doomed(i)]
    since = min((at for i in found if (at := view.ready_since(i))), default=None)
    if not coming or since is None:
        return found
    left_s = GATHER_S - (view.now - since).total_seconds()
    if left_s <= 0:
        return found
    draft.waits_s.append(left_s)
    return frozenset()


def delivery(view: View, roster: Roster) -> Deliver | None:
    """Return the errand that brings a roster's hosts to the launcher, if it runs."""
    if view.launcher is None:
        return None
    files = view.files(sorted(roster.hosts))
    return Deliver(view.launcher, tuple(sorted(files.items())), roster.edition)


def delivered(view: View, roster: Roster) -> bool:
    """Tell whether the launcher has a roster's hosts, and no others, in its files."""
    errand = delivery(view, roster)
    outcome = None if errand is None else view.outcomes.get(errand)
    return outcome is not None and not outcome.error


def launches(view: View, draft: Draft) -> bool:
    """Tell whether a launcher may be made now; the hosts that it begins with are listed then.

    It is when all workers are ready, or enough of them have been for long enough.
    """
    dialler = view.dialler
    if dialler is None or dialler.situation is not Situation.MISSING:
        return False
    ready = [index for index in view.alive if view.is_ready(index)]
    # Those that were taken away before the bound was raised keep nobody waiting for ever.
    least = min(view.elasticity.least, len(view.roster.members))
    if not ready or len(ready) < least:
        return False
    if len(ready) < len(view.alive):
        start = _waits_since(view) + datetime.timedelta(seconds=view.policy.start_after_s)
        left_s = (start - view.now).total_seconds()
        if left_s > 0:
            draft.waits_s.append(left_s)
            return False
    draft.list_hosts(*ready)
    return True


def _waits_since(view: View) -> datetime.datetime:
    """Return when the wait for workers began: with the job, or when it was last run again."""
    status = view.job.status
    since = [c.since for c in status.conditions if c.type == words.WORKERS_CREATED]
    since += [status.start_time] if status.start_time else []
    return max(since, default=view.now)


def _probe(view: View, workers: Collection[int]) -> Probe | None:
    if view.launcher is None:
        return None
    return Probe(view.launcher, frozenset(view.names(sorted(workers))))


def _ready(view: View, workers: Collection[int]) -> frozenset[int]:
    return frozenset(i for i in workers if view.is_ready(i) and not view.is_doomed(i))


def _indispensable(view: View, draft: Draft, listed: Collection[int]) -> Collection[int]:
    """Return those that flee, and are listed until others come: without them there are too few."""
    fleeing = view.roster.fleeing
    if fleeing is None or len(listed) >= view.elasticity.least:
        return ()
    # The rest of the time is for the launcher to let go of them.
    wait_s = view.left_s(fleeing, view.policy.let_go_s / 2)
    if wait_s <= 0:
        return ()
    draft.waits_s.append(wait_s)
    there = set(view.roster.hosts) & set(view.roster.present) - view.roster.spent
    return there.intersection(fleeing.workers)


def _goes(view: View, worker: int) -> bool:
    """Tell whether a worker is to leave, and no script of the user's has to see to that first."""
    scaling = view.roster.scaling
    scaler = view.scaler(scaling.uid) if scaling else None
    if scaling and not scaling.adds and not scaling.ready and worker in scaling.workers:
        # It is not known yet whether the launcher uses it.
        return False
    by_script = bool(scaling and not scaling.done and scaler and scaler.script)
    if by_script and scaling and worker in scaling.workers:
        return False
    return worker in view.roster.leaving
