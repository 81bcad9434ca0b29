"""Who is on the roster: new members, and who is to go. Pure.

An index is reused only if the launcher used its worker until the end: launchers avoid the names of
workers that failed.
"""

import itertools
from collections.abc import Sequence

import attrs

from dlctl.api.elastic import Roster, Scaler
from dlctl.reconcilers.elastic.view import View


class RefusedError(Exception):
    """What is asked for cannot be; the text is for who asked."""


def initial(count: int) -> Roster:
    return Roster(members=tuple(range(count)), followed=count)


def following(roster: Roster, count: int, last: int) -> Roster:
    """Return the roster of a job that nobody has dialled yet, for the number its spec has now."""
    if roster.followed == count:
        return roster
    kept = tuple(i for i in roster.members if i not in roster.spent)[:count]
    more = attrs.evolve(roster, members=kept)
    return attrs.evolve(
        more, members=(*kept, *fresh(more, count - len(kept), last)), followed=count
    )


def fresh(roster: Roster, count: int, last: int) -> tuple[int, ...]:
    """Return indexes for new workers: the next ones, without those of workers that ended.

    Beyond the ``last``, for which names are too long, the lowest that are free follow. They are
    fewer than ``count`` if there are no more.
    """
    first = max(roster.present, default=-1) + 1
    lower = (index for index in range(first) if index not in roster.present)
    candidates = itertools.chain(range(first, last + 1), lower)
    return tuple(itertools.islice((i for i in candidates if i not in roster.spent), count))


def added(view: View, count: int) -> tuple[int, ...]:
    """Choose the workers that come.

    :raises RefusedError: if there would be too many.
    """
    after, most = len(view.alive) + count, view.elasticity.most
    if most is not None and after > most:
        raise RefusedError(
            f"{count} more would make {after} workers, but maxReplicas of "
            f"TrainingJob {view.job.key} is {most}"
        )
    chosen = fresh(view.roster, count, view.last_index)
    if len(chosen) < count:
        raise RefusedError(f"the names of {count} more workers would be too long")
    return chosen


def removed(view: View, scaler: Scaler) -> tuple[int, ...]:
    """Choose the workers that go, by name or the last ones.

    :raises RefusedError: if there are none of these names, or too few would be left.
    """
    if scaler.pods is not None:
        chosen = _named(view, scaler.pods)
    else:
        count = scaler.count or 0
        if count >= len(view.alive):
            raise RefusedError(
                f".spec.toDelete.count should be less than current replicas {len(view.alive)}"
            )
        chosen = last(view, count)
    left = len(set(view.alive) - set(chosen))
    if left < view.elasticity.least:
        raise RefusedError(
            f"{left} workers would be left, but minReplicas of TrainingJob {view.job.key} "
            f"is {view.elasticity.least}"
        )
    return chosen


def last(view: View, count: int) -> tuple[int, ...]:
    """Return the last workers, and before them those that nobody has dialled yet."""
    ordered = sorted(view.alive, key=lambda i: (i in view.hosts, -i))
    return tuple(sorted(ordered[:count]))


def _named(view: View, pods: Sequence[str]) -> tuple[int, ...]:
    indexes = {view.name(index): index for index in view.roster.members}
    unknown = [name for name in pods if name not in indexes]
    if unknown:
        raise RefusedError(
            f".spec.toDelete.podNames has {', '.join(unknown)}, but the workers of TrainingJob "
            f"{view.job.key} are {', '.join(indexes)}"
        )
    return tuple(sorted({indexes[name] for name in pods}))
