"""Selects the workers to add and remove, and the indexes of new ones. Pure.

An index is reused only if the launcher used its worker until the end: launchers blacklist the names
of failed workers.
"""

import itertools
from collections.abc import Collection, Sequence
from typing import Final

import attrs

from dlctl.api.objects.scalers import Scaler
from dlctl.api.status.membership import Membership
from dlctl.dialects.child_names import MAX_LENGTH
from dlctl.dialects.field_reader import MAX_REPLICAS
from dlctl.errors import counted, truncated
from dlctl.name_lists import first_names
from dlctl.reconcilers.membership.membership_state import MembershipState

# Names in a message.
_MAX_SHOWN: Final = 10


class ScaleRejectedError(Exception):
    """A scale request that cannot be met; the message is for the user."""


def initial_membership(count: int) -> Membership:
    return Membership(members=tuple(range(count)), observed_replicas=count)


def follow_replicas(membership: Membership, count: int, last: int) -> Membership:
    """Return the membership of a job without a launcher, adjusted to the replicas in its spec."""
    if membership.observed_replicas == count:
        return membership
    gone = membership.retired | membership.leaving
    kept = tuple(i for i in membership.members if i not in gone)[:count]
    more = attrs.evolve(membership, members=kept)
    return attrs.evolve(
        more, members=(*kept, *free_indexes(more, count - len(kept), last)), observed_replicas=count
    )


def free_indexes(membership: Membership, count: int, last: int) -> tuple[int, ...]:
    """Return indexes for new workers: the next ones that no retired worker had.

    ``last`` is the highest index whose pod name is short enough; after it, the lowest free indexes
    follow. There may be fewer than ``count``.
    """
    present = frozenset(membership.present)
    first = max(present, default=-1) + 1
    lower = (index for index in range(first) if index not in present)
    candidates = itertools.chain(range(first, last + 1), lower)
    return tuple(itertools.islice((i for i in candidates if i not in membership.retired), count))


def choose_added(state: MembershipState, count: int) -> tuple[int, ...]:
    """Choose the workers to add.

    :raises ScaleRejectedError: if there would be too many.
    """
    after, max_replicas = len(state.alive) + count, state.elasticity.max_replicas
    if max_replicas is not None and after > max_replicas:
        raise ScaleRejectedError(
            f"{count} more would make {after} workers, but maxReplicas of "
            f"{state.job.resource.kind} {state.job.key} is {max_replicas}"
        )
    # Failed workers that are not replaced stay members, too.
    if (members := len(state.membership.members) + count) > MAX_REPLICAS:
        raise ScaleRejectedError(
            f"{count} more would make {members} workers, but a job may have {MAX_REPLICAS}"
        )
    chosen = free_indexes(state.membership, count, state.max_index)
    if len(chosen) < count:
        raise ScaleRejectedError(f"the names of {count} more workers would be too long")
    return chosen


def choose_removed(state: MembershipState, scaler: Scaler) -> tuple[int, ...]:
    """Choose the workers to remove, by name or the last ones.

    :raises ScaleRejectedError: if a name is unknown, or too few would be left.
    """
    if scaler.pods is not None:
        chosen = _indexes_of(state, scaler.pods)
    else:
        count = scaler.count or 0
        if count >= len(state.alive):
            raise ScaleRejectedError(
                f".spec.toDelete.count should be less than current replicas {len(state.alive)}"
            )
        chosen = choose_last(state, count)
    left = len(set(state.alive) - set(chosen))
    if left < state.elasticity.min_replicas:
        raise ScaleRejectedError(
            f"{counted(left, 'worker')} would be left, but minReplicas of "
            f"{state.job.resource.kind} {state.job.key} is {state.elasticity.min_replicas}"
        )
    return chosen


def choose_last(state: MembershipState, count: int) -> tuple[int, ...]:
    """Return the workers to remove first: those not in the host file, then the highest indexes."""
    ordered = sorted(state.alive, key=lambda i: (i in state.hosts, -i))
    return tuple(sorted(ordered[:count]))


def shown_names(names: Collection[str]) -> str:
    """Return the first names as text: a message of all may be too long for a status."""
    shown = [truncated(name, MAX_LENGTH) for name in itertools.islice(names, _MAX_SHOWN)]
    return first_names(shown, _MAX_SHOWN, count=len(names))


def _indexes_of(state: MembershipState, pods: Sequence[str]) -> tuple[int, ...]:
    indexes = {state.pod_name(index): index for index in state.membership.members}
    unknown = [name for name in pods if name not in indexes]
    if unknown:
        raise ScaleRejectedError(
            f".spec.toDelete.podNames has {shown_names(unknown)}, but the workers of "
            f"{state.job.resource.kind} {state.job.key} are {shown_names(indexes)}"
        )
    return tuple(sorted({indexes[name] for name in pods}))
