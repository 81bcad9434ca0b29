"""The charges of all jobs, by node, kept up to date by the changes of jobs.

Nothing of it is stored: the statuses of jobs are. Charges of deleted jobs are remembered until they
expire, by every controller that has seen the jobs: a standby keeps its ledger up to date as well.
"""

import datetime
import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dlctl.api.meta import UID
from dlctl.api.objects.jobs import JobObject
from dlctl.clock import Clock, SystemClock
from dlctl.dialects.status import attempts_codec
from dlctl.informers.handlers import Change
from dlctl.metrics import Metrics
from dlctl.reconcilers.nodes.charges import Charge, ChargeRules, NodeCharges, charges_of

logger = logging.getLogger(__name__)

# Jobs with charges that are remembered after their deletion, in each namespace and in all of them.
MAX_DELETED: Final = 10_000
MAX_DELETED_OF_NAMESPACE: Final = 200
# Many jobs may create pods at a time, as after a start.
_MAX_AGE_S: Final = 1.0
_MAX_CACHED: Final = 100


@attrs.define(eq=False)
class ChargeLedger:
    """All charges that may still count."""

    ttl_s: float = 86400.0
    clock: Clock = attrs.field(factory=SystemClock)
    metrics: Metrics = attrs.field(factory=Metrics)
    # True if charges are logged and appear in metrics, which is up to the leader.
    is_reporting: bool = attrs.field(init=False, default=False)
    # Called with the name of a node whose charges have changed.
    on_change: list[Callable[[str], None]] = attrs.field(init=False, factory=list)
    _by_job: dict[UID, tuple[Charge, ...]] = attrs.field(init=False, factory=dict)
    # By node, those that count in all namespaces under "", and the others under their own, so that
    # nobody pays for what the programs of others print.
    _by_scope: dict[str, dict[str, dict[UID, list[Charge]]]] = attrs.field(init=False, factory=dict)
    # The jobs that are gone, by namespace, in order of their deletion.
    _deleted: dict[str, OrderedDict[UID, None]] = attrs.field(init=False, factory=dict)
    _deleted_count: int = attrs.field(init=False, default=0)
    # The last results of :meth:`all` by namespace, until a charge changes.
    _counted: dict[str, tuple[datetime.datetime, Sequence[NodeCharges]]] = attrs.field(
        init=False, factory=dict
    )

    def start_reporting(self) -> None:
        """Report new charges from now on."""
        self.is_reporting = True

    def handle(self, change: Change[JobObject]) -> None:
        """Take over the charges of a changed job."""
        old, new = change.old, change.new
        if new is None or (old is not None and old.metadata.uid != new.metadata.uid):
            if old is not None and old.metadata.uid in self._by_job:
                self._remember(old)
        if new is None or (old is not None and _is_same_status(old, new) and not change.initial):
            return
        charges = tuple(
            charges_of(new.metadata.uid, new.key, attempts_codec.read_stored(new.status))
        )
        if charges != self._by_job.get(new.metadata.uid, ()):
            is_new = self.is_reporting and not change.initial
            self._replace(new.metadata.uid, charges, is_new=is_new)

    def all(self, namespace: str = "") -> Sequence[NodeCharges]:
        """Return what counts against each charged node, no older than a second."""
        rules = self._rules(namespace)
        counted = self._counted.get(namespace)
        if counted is None or not 0 <= (rules.now - counted[0]).total_seconds() < _MAX_AGE_S:
            scopes = [self._by_scope.get(one, {}) for one in dict.fromkeys(("", namespace))]
            nodes = dict.fromkeys(itertools.chain.from_iterable(scopes))
            found = (rules.counted(node, _charges(scopes, node)) for node in nodes)
            counted = rules.now, [one for one in found if one is not None]
            if len(self._counted) >= _MAX_CACHED:
                self._counted.clear()
            self._counted[namespace] = counted
        return counted[1]

    def avoided(self, namespace: str = "") -> list[NodeCharges]:
        """Return the nodes that jobs of a namespace or of all avoid, the most charged first."""
        avoided = (one for one in self.all(namespace) if one.is_avoided)
        return sorted(avoided, key=lambda one: one.order)

    def _rules(self, namespace: str) -> ChargeRules:
        ttl = datetime.timedelta(seconds=self.ttl_s)
        return ChargeRules(self.clock.now(), ttl, namespace)

    def _replace(self, job: UID, charges: tuple[Charge, ...], *, is_new: bool = False) -> None:
        before = self._by_job.pop(job, ())
        for charge in before:
            self._discard(charge)
        if charges:
            self._by_job[job] = charges
        for charge in charges:
            by_node = self._by_scope.setdefault(charge.scope, {})
            by_node.setdefault(charge.node, {}).setdefault(job, []).append(charge)
            if is_new and charge not in before:
                self._report(charge)
        for scope in {charge.scope for charge in (*before, *charges)}:
            self._forget_counted(scope)
        for node in {charge.node for charge in (*before, *charges)}:
            for notify in self.on_change:
                notify(node)

    def _discard(self, charge: Charge) -> None:
        """Drop all charges of a job against a node that count where this one does."""
        by_node = self._by_scope.get(charge.scope, {})
        of_node = by_node.get(charge.node, {})
        of_node.pop(charge.job, None)
        if not of_node:
            by_node.pop(charge.node, None)
        if not by_node:
            self._by_scope.pop(charge.scope, None)

    def _forget_counted(self, scope: str) -> None:
        if scope:
            self._counted.pop(scope, None)
        else:
            self._counted.clear()

    def _report(self, charge: Charge) -> None:
        self.metrics.dlctl_node_charges_total.labels(charge.cause).inc()
        logger.info(
            "node charged",
            extra={"node": charge.node, "job": str(charge.key), "cause": charge.cause},
        )

    def _remember(self, job: JobObject) -> None:
        """Keep the charges of a deleted job; forget expired ones, and the first of too many."""
        namespace = job.metadata.namespace or ""
        own = self._deleted.setdefault(namespace, OrderedDict())
        own[job.metadata.uid] = None
        self._deleted_count += 1
        while self._is_expired(next(iter(own))):
            self._forget_first(namespace)
            if not own:
                return
        if len(own) > MAX_DELETED_OF_NAMESPACE:
            self._forget_first(namespace)
        elif self._deleted_count > MAX_DELETED:
            self._forget_first(max(self._deleted, key=lambda one: len(self._deleted[one])))

    def _is_expired(self, job: UID) -> bool:
        charges = self._by_job.get(job, ())
        return not any(self._rules(c.key.namespace).counts(c) for c in charges)

    def _forget_first(self, namespace: str) -> None:
        job, _ = self._deleted[namespace].popitem(last=False)
        self._deleted_count -= 1
        self._replace(job, ())
        if not self._deleted[namespace]:
            del self._deleted[namespace]


def _charges(
    scopes: Iterable[Mapping[str, Mapping[UID, Sequence[Charge]]]], node: str
) -> Iterator[Charge]:
    for by_node in scopes:
        for charges in by_node.get(node, {}).values():
            yield from charges


def _is_same_status(old: JobObject, new: JobObject) -> bool:
    return old.metadata.uid == new.metadata.uid and bytes(old.status) == bytes(new.status)
