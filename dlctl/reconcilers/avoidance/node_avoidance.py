"""Which nodes the new pods of a job avoid."""

from collections.abc import Mapping, Sequence

import attrs

from dlctl.api.event_note import EventNote
from dlctl.api.job import Job
from dlctl.reconcilers.children.avoided_nodes import (
    AvoidedNode,
    avoided_nodes,
    is_avoidance_dropped,
)
from dlctl.reconcilers.nodes.charge_ledger import ChargeLedger
from dlctl.reconcilers.nodes.charges import NodeCharges
from dlctl.reconcilers.nodes.node_states import NodeFault
from dlctl.reconcilers.nodes.node_tracker import NodeTracker
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.plan import Plan


@attrs.frozen
class NodeAvoidance:
    """Chooses the nodes that jobs avoid."""

    ledger: ChargeLedger = attrs.field(factory=ChargeLedger)
    nodes: NodeTracker = attrs.field(factory=NodeTracker)
    # 0 disables it.
    max_count: int = 0

    def avoided_by(self, job: Job) -> Sequence[AvoidedNode]:
        """Return the nodes that a job's new pods avoid, the most suspect first."""
        if not self.max_count or is_avoidance_dropped(job.status):
            return ()
        charged = {one.node: one for one in self.ledger.all(job.key.namespace)}
        own = _own_nodes(job, charged, self.nodes)
        avoided = self.ledger.avoided(job.key.namespace)
        special = self.nodes.current.by_name.items()
        unhealthy = sorted(name for name, one in special if one.fault_kind is NodeFault.UNHEALTHY)
        # Each node once, in this order; deleted nodes would take the places of others.
        drained = _drained_nodes(job, self.nodes)
        found = dict.fromkeys((*own, *(one.node for one in avoided), *unhealthy, *drained))
        names = [name for name in found if not self.nodes.is_gone(name)][: self.max_count]
        if self.nodes.count and len(names) >= self.nodes.count:
            # There is no other node.
            return ()
        return [AvoidedNode(name, self.nodes.hostname(name)) for name in names]


def with_avoidance_event(
    plan: Plan, job: Job, observed: Observed, nodes: Sequence[AvoidedNode]
) -> Plan:
    """Return the plan with an event before the first pod of an attempt that avoids nodes."""
    if not nodes or any(avoided_nodes(pod) for pod in observed.own_pods):
        return plan
    names = ", ".join(node.name for node in nodes)
    message = (
        f"the pods of {job.resource.kind} {job.key} avoid {names}: charged, at fault, or draining"
    )
    note = EventNote("Normal", job.messages.reason("NodesAvoided"), message)
    return attrs.evolve(plan, action_notes=(*plan.action_notes, note))


def _own_nodes(job: Job, charged: Mapping[str, NodeCharges], nodes: NodeTracker) -> Sequence[str]:
    """Return the nodes by which the job's own attempts ended, the newest first.

    A node that was merely about to go counts only while it still is.
    """
    special, names = nodes.current.by_name, []
    for attempt in reversed(job.status.attempts):
        node = attempt.verdict.node if attempt.verdict else ""
        is_charged = node in charged and job.uid in charged[node].jobs
        infrastructure = attempt.verdict is not None and attempt.verdict.cause.is_infrastructure
        if node and (is_charged or (infrastructure and node in special)):
            names.append(node)
    return names


def _drained_nodes(job: Job, nodes: NodeTracker) -> Sequence[str]:
    """Return further nodes that the job left and that are still about to go, the newest first.

    There may be hundreds, more than a job may avoid.
    """
    attempts = reversed(job.status.attempts)
    found = (name for attempt in attempts for name in attempt.drained_nodes)
    return [name for name in found if name in nodes.current.by_name]
