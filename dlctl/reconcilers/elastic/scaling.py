"""Workers that come and go because somebody asks for it: one change at a time, oldest first. Pure.

What a change is about is written down before anything is done for it, and it alone is acted on.
"""

from collections.abc import Sequence

import attrs

from dlctl.api.elastic import Scaler, ScalerPhase, Scaling
from dlctl.dialects.elastic import words
from dlctl.dialects.elastic.training_status import workers_of
from dlctl.reconcilers.elastic import farewell, hosts, scripts, tellings
from dlctl.reconcilers.elastic.draft import Draft
from dlctl.reconcilers.elastic.farewell import cleared, let_go
from dlctl.reconcilers.elastic.roster import RefusedError, added, fresh, last, removed
from dlctl.reconcilers.elastic.view import View
from dlctl.reconcilers.observe import Situation


def take_up(view: View, draft: Draft) -> None:
    """Go on with what another operator was about, with the workers that it had chosen."""
    if not view.job.status.foreign or view.roster.scaling is not None:
        return
    for scaler in view.scalers:
        workers = workers_of(list(scaler.status.pods), view.job.key.name)
        begun = workers and not scaler.flaw and scaler.status.phase is ScalerPhase.SCALING
        left = len(set(view.alive) - set(workers))
        if begun and (scaler.adds or left >= view.elasticity.least):
            name, uid = scaler.full_name, scaler.uid
            change = Scaling(scaler.adds, workers, view.now, name, uid)
            draft.roster = attrs.evolve(draft.roster, scaling=change)
            return


def begin(view: View, draft: Draft) -> None:
    """Begin the next change that is asked for: by the spec, or by a scaler."""
    if view.asked != view.roster.followed:
        _follow(view, draft)
    else:
        for scaler in view.scalers:
            if not scaler.flaw and _begin(view, draft, scaler):
                break


def take_away(view: View, draft: Draft, scaling: Scaling) -> None:
    """Take the change one step further by which workers go."""
    scaler = view.scaler(scaling.uid)
    if not scaling.ready:
        _look_at_those_that_leave(view, draft, scaling)
        return
    if scaler and scaler.script and not scaling.done:
        if (failure := scripts.run(view, draft, scaling, scaler)) is not None:
            if failure:
                _end(view, draft, scaling, failure)
            return
        scaling = attrs.evolve(scaling, done=True)
        draft.roster = attrs.evolve(draft.roster, scaling=scaling)
        # What follows from it is for when it has been written down.
        return
    if (scaling.done or let_go(view, draft, scaling)) and cleared(view, draft, scaling):
        _dismiss(draft, scaling)
        _end(view, draft, scaling)


def bring_in(view: View, draft: Draft, scaling: Scaling) -> None:
    """Take the change one step further by which workers come."""
    scaler = view.scaler(scaling.uid)
    if scaling.done:
        _await_delivery(view, draft, scaling, scaler)
    elif scaler is not None:
        _bring_in_by_scaler(view, draft, scaling, scaler)
    elif scaling.uid:
        # Nobody wants them any more; nobody knows them yet.
        _end(view, draft, scaling, "it was deleted")
    else:
        _bring_in_by_spec(view, draft, scaling)


def finish(view: View, draft: Draft, scaling: Scaling) -> None:
    """End a change whose scaler was told its result before the controller itself ended."""
    ok = any(one.uid == scaling.uid and one.succeeded for one in view.decided)
    if scaling.adds and ok:
        draft.enrol(*scaling.workers)
    elif not scaling.adds and ok:
        _dismiss(draft, scaling)
    _end(view, draft, scaling, "" if ok else "it has failed")


def settle(view: View, draft: Draft) -> None:
    """End a change of a job whose pods all go: the next ones will be as it wanted."""
    scaling = draft.roster.scaling
    if scaling is None:
        return
    if scaling.adds:
        draft.enrol(*scaling.workers)
    else:
        draft.dismiss(*scaling.workers)
    _end(view, draft, scaling)


def _begin(view: View, draft: Draft, scaler: Scaler) -> bool:
    """Begin what a scaler asks for; if it cannot be, the scaler has failed."""
    try:
        chosen = added(view, scaler.count or 0) if scaler.adds else removed(view, scaler)
    except RefusedError as error:
        tellings.ended(draft, scaler, view.now, str(error))
        draft.conditions.append(words.scale_ended(view.job, scaler.full_name, view.now, ok=False))
        return False
    _open(view, draft, Scaling(scaler.adds, chosen, view.now, scaler.full_name, scaler.uid))
    return True


def _follow(view: View, draft: Draft) -> None:
    """Begin what brings the number of workers to that in the spec."""
    more = view.asked - len(view.alive)
    draft.roster = attrs.evolve(draft.roster, followed=view.asked)
    if more > 0:
        _open(view, draft, Scaling(True, fresh(view.roster, more, view.last_index), view.now))
    elif more < 0:
        _open(view, draft, Scaling(False, last(view, -more), view.now))


def _open(view: View, draft: Draft, scaling: Scaling) -> None:
    draft.roster = attrs.evolve(draft.roster, scaling=scaling)
    scaler = view.scaler(scaling.uid)
    draft.conditions.append(words.scaling(view.job, scaling.scaler, view.now))
    if scaler is not None:
        tellings.begun(draft, scaler, view.names(scaling.workers), view.now)


def _look_at_those_that_leave(view: View, draft: Draft, scaling: Scaling) -> None:
    """Note who is not in use, while all are in the host file; without a script, they leave it."""
    unused = farewell.unused(view, draft, scaling)
    if unused is None:
        return
    looked_at = attrs.evolve(scaling, ready=True, unused=unused)
    draft.roster = attrs.evolve(draft.roster, scaling=looked_at)
    scaler = view.scaler(scaling.uid)
    if not (scaler and scaler.script):
        draft.list_hosts(*(i for i in draft.roster.hosts if i not in scaling.workers))


def _dismiss(draft: Draft, scaling: Scaling) -> None:
    draft.dismiss(*scaling.workers)
    for index in scaling.unused:
        draft.spend(index)


def _end(view: View, draft: Draft, scaling: Scaling, failure: str = "") -> None:
    """End a change; of workers that came to no good, nothing is left."""
    draft.roster = attrs.evolve(draft.roster, scaling=None)
    ended = words.scale_ended(view.job, scaling.scaler, view.now, ok=not failure)
    draft.conditions.append(ended)
    scaler = view.scaler(scaling.uid)
    if scaler is not None:
        tellings.ended(draft, scaler, view.now, failure)


def _answering(view: View, draft: Draft, scaling: Scaling, wait_s: float) -> frozenset[int]:
    """Return those that answer; the launcher is asked for all at once, or when time is up.

    What was asked for each that becomes ready would go on in it, one command beside the other.
    """
    if wait_s > 0 and not all(view.is_ready(worker) for worker in scaling.workers):
        return frozenset()
    return hosts.answering(view, draft, scaling.workers)


def _came(view: View, draft: Draft, scaling: Scaling, scaler: Scaler) -> tuple[int, ...] | None:
    """Return those that came, when it is decided; none if they are too few, None if it is not."""
    wait_s = view.left_s(scaling, _limit_s(view, scaler))
    answered = tuple(sorted(_answering(view, draft, scaling, wait_s)))
    if len(answered) == len(scaling.workers):
        return answered
    if wait_s > 0:
        draft.waits_s.append(wait_s)
        return None
    if hosts.is_being_asked(view, scaling.workers):
        # By a controller that has just begun, too: what came in time is not to go for that.
        return None
    enough = len(scaling.workers) if scaler.enough is None else scaler.enough
    return answered if answered and len(answered) >= enough else ()


def _bring_in_by_scaler(view: View, draft: Draft, scaling: Scaling, scaler: Scaler) -> None:
    """List all that come at once, so that training is interrupted but once."""
    if broken := [i for i in scaling.workers if _is_broken(view, i)]:
        _try_again(view, draft, scaling, scaler, broken)
        return
    came = scaling.workers if scaling.ready else _came(view, draft, scaling, scaler)
    if came is None:
        return
    if came and not scaling.ready and (scaler.script or len(came) < len(scaling.workers)):
        # Who is late is late: a script that runs is told of no others, whatever they do meanwhile.
        ready = attrs.evolve(scaling, workers=came, ready=True)
        draft.roster = attrs.evolve(draft.roster, scaling=ready)
        return
    failure = None if came else f"execution timeout: {hosts.silence(view, scaling.workers)}"
    if came and scaler.script:
        failure = scripts.run(view, draft, scaling, scaler)
    if failure is None:
        draft.list_hosts(*draft.roster.hosts, *came)
        listed = attrs.evolve(scaling, done=True)
        draft.roster = attrs.evolve(draft.roster, scaling=listed)
    elif failure:
        _end(view, draft, scaling, failure)


def _await_delivery(view: View, draft: Draft, scaling: Scaling, scaler: Scaler | None) -> None:
    """End a change whose workers are listed, once the launcher knows, or cannot be told for long.

    They stay in both cases: it may be that it knows.
    """
    told = view.launcher is None or hosts.delivered(view, draft.roster)
    wait_s = view.left_s(scaling, _limit_s(view, scaler) + view.policy.let_go_s)
    if not told and wait_s > 0:
        draft.waits_s.append(wait_s)
        return
    draft.enrol(*scaling.workers)
    _end(view, draft, scaling, "" if told else "the launcher could not be told of them in time")


def _limit_s(view: View, scaler: Scaler | None) -> float:
    own_s = scaler.timeout_s if scaler else None
    return view.policy.scale_out_s if own_s is None else own_s


def _bring_in_by_spec(view: View, draft: Draft, scaling: Scaling) -> None:
    """Enrol what the spec asks for once it is there; what is late joins when it comes."""
    wait_s = view.left_s(scaling, view.policy.scale_out_s)
    answered = _answering(view, draft, scaling, wait_s)
    changed = view.asked != view.roster.followed
    if len(answered) < len(scaling.workers) and wait_s > 0 and not changed:
        draft.waits_s.append(wait_s)
        return
    draft.enrol(*scaling.workers)
    draft.list_hosts(*draft.roster.hosts, *answered)
    _end(view, draft, scaling)


def _is_broken(view: View, worker: int) -> bool:
    one = view.workers.get(worker)
    if one is None or one.pod is None or one.pod.metadata.terminating:
        # One that is on its way out was counted before it was told to go.
        return False
    return one.situation in (Situation.BROKEN, Situation.SUCCEEDED)


def _try_again(
    view: View, draft: Draft, scaling: Scaling, scaler: Scaler, broken: Sequence[int]
) -> None:
    names = ", ".join(view.names(broken))
    if scaling.failures >= scaler.backoff_limit:
        _end(view, draft, scaling, f"{names} ended before the launcher could use them")
        return
    pods = [one.pod for i in broken if (one := view.workers.get(i)) and one.pod]
    draft.deleted += [pod for pod in pods if not pod.metadata.terminating]
    once_more = attrs.evolve(scaling, failures=scaling.failures + 1)
    draft.roster = attrs.evolve(draft.roster, scaling=once_more)
