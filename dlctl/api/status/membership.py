"""The workers of an elastic job, as its status records them, and the changes in progress.

Workers are identified by index; the names of their pods derive from the job's name.
"""

import datetime
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final, Self

import attrs

# Longer indexes of workers are malformed names.
MAX_INDEX_DIGITS: Final = 9


@attrs.frozen
class ScaleOperation:
    """One change of the workers in progress, persisted before it has any effect.

    ``scaler`` and ``uid`` identify the requesting object. They are empty if the job changes by
    itself: to follow its spec, or to leave a node.
    """

    is_scale_out: bool
    # The workers to add or remove.
    workers: tuple[int, ...]
    since: datetime.datetime
    scaler: str = ""
    uid: str = ""
    # Pods that were lost before they could be used.
    failures: int = 0
    # Scale-out: all workers are reachable, and the script may run. Scale-in: it is known which of
    # the workers the launcher used.
    is_ready: bool = False
    # Scale-out: the workers are in the host file. Scale-in: the script has run.
    is_done: bool = False
    # Scale-in: workers that the launcher did not use while it used others. Their processes have
    # died, so the launcher blacklists their names.
    unused: tuple[int, ...] = ()


@attrs.frozen
class Membership:
    """The current workers of a job, and the state of changes to them."""

    # The workers that the job should have, including dead ones that are not replaced.
    members: tuple[int, ...] = ()
    # The workers in the host file.
    hosts: tuple[int, ...] = ()
    # Workers that ended; their names are never reused, since launchers blacklist them.
    retired: frozenset[int] = frozenset()
    # The number of replicas in the spec that the members already reflect.
    observed_replicas: int = 0
    scaling: ScaleOperation | None = None
    # Workers that leave draining nodes; their replacements are already members.
    evacuating: ScaleOperation | None = None
    # Increases with each change of the hosts, so that late writes of older hosts are recognized.
    # Zero if unknown.
    generation: int = 0

    # Cached: both are asked for each worker.
    @cached_property
    def leaving(self) -> frozenset[int]:
        """Return the workers that are being removed."""
        changes = (change for change in (self.scaling, self.evacuating) if change)
        return frozenset(i for change in changes if not change.is_scale_out for i in change.workers)

    @cached_property
    def present(self) -> tuple[int, ...]:
        """Return all workers with pods: the members, and those being added or removed."""
        scaling = self.scaling.workers if self.scaling else ()
        return tuple(sorted({*self.members, *scaling, *self.leaving}))

    def add(self, workers: Iterable[int]) -> Self:
        return attrs.evolve(self, members=tuple(sorted({*self.members, *workers})))

    def remove(self, workers: Collection[int]) -> Self:
        """Return it without these workers, neither as members nor as hosts."""
        removed = frozenset(workers)
        members = tuple(i for i in self.members if i not in removed)
        hosts = (i for i in self.hosts if i not in removed)
        return attrs.evolve(self, members=members).with_hosts(hosts)

    def retire(self, workers: Iterable[int]) -> Self:
        return attrs.evolve(self, retired=self.retired.union(workers))

    def with_hosts(self, workers: Iterable[int]) -> Self:
        return attrs.evolve(self, hosts=tuple(sorted(set(workers))))

    def with_scaling(self, operation: ScaleOperation | None) -> Self:
        return attrs.evolve(self, scaling=operation)

    def with_evacuating(self, operation: ScaleOperation | None) -> Self:
        return attrs.evolve(self, evacuating=operation)

    def reset(self) -> Self:
        """Return the membership for a new launcher, which has no hosts and no blacklist yet."""
        return attrs.evolve(self, hosts=(), retired=frozenset())


def worker_indexes(names: Iterable[str], prefix: str) -> tuple[int, ...]:
    """Return the indexes of workers by name; names without the prefix of the job are ignored."""
    found = (_worker_index(name, prefix) for name in names)
    return tuple(dict.fromkeys(index for index in found if index is not None))


def _worker_index(name: str, prefix: str) -> int | None:
    digits = name.removeprefix(prefix)
    is_index = digits.isascii() and digits.isdigit() and len(digits) <= MAX_INDEX_DIGITS
    return int(digits) if is_index and name.startswith(prefix) else None
