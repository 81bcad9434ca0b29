"""Signals of a node by its taints, conditions and labels: that it is draining, or unhealthy. Pure.

*Draining* nodes are about to be removed or restarted: their jobs act before that. *Unhealthy*
ones have a fault: they are to blame for failures, and are avoided.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from dlctl.api.objects.nodes import Node
from dlctl.api.status.verdict import Cause

_CONDITION_STATUSES: Final = frozenset({"True", "False", "Unknown"})
_SCALE_DOWN_PREFIXES: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/")
_LOST_PREFIX: Final = "node.kubernetes.io/"
_MAX_REASON_CHARS: Final = 100


@attrs.frozen
class Signal:
    """One signal that a node shows: its setting, and what the node shows."""

    entry: str
    text: str

    @property
    def cause(self) -> Cause:
        """Return the cause of the end of an attempt that makes way for it."""
        if self.entry.startswith(_SCALE_DOWN_PREFIXES):
            return Cause.SCALE_DOWN
        return Cause.NODE if self.entry.startswith(_LOST_PREFIX) else Cause.PREEMPTION


@attrs.frozen
class SignalSet:
    """Signals of one class, by the part of a node that shows them."""

    # Keys of taints; also types of conditions that are True.
    names: frozenset[str] = frozenset()
    # Types and statuses of conditions.
    conditions: frozenset[tuple[str, str]] = frozenset()
    # Values by key.
    labels: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, entries: Iterable[str]) -> "SignalSet":
        """Return the signals of a setting.

        An entry is a ``Name`` (the key of a taint, or the type of a condition that is True), a
        ``Type=False`` (a condition with that status), or a ``key=value`` (a label).
        """
        names: set[str] = set()
        conditions: set[tuple[str, str]] = set()
        labels: dict[str, frozenset[str]] = {}
        for entry in entries:
            name, has_value, value = entry.partition("=")
            if not has_value:
                names.add(name)
                conditions.add((name, "True"))
            elif value in _CONDITION_STATUSES:
                conditions.add((name, value))
            else:
                labels[name] = labels.get(name, frozenset()) | {value}
        return cls(frozenset(names), frozenset(conditions), labels)

    def find(self, node: Node) -> Signal | None:
        """Return the first of the signals that a node shows, in the order in which it has them."""
        for taint in (node.spec.taints if node.spec else None) or ():
            if taint.key in self.names:
                return Signal(taint.key, f"has the taint {taint.key}")
        for one in node.conditions:
            if (one.type, one.status) in self.conditions:
                entry = one.type if one.status == "True" else f"{one.type}={one.status}"
                reason = f" ({one.reason[:_MAX_REASON_CHARS]})" if one.reason else ""
                return Signal(entry, f"has the condition {one.type}={one.status}{reason}")
        for key, values in self.labels.items():
            value = node.metadata.label(key)
            if value in values:
                return Signal(f"{key}={value}", f"has the label {key}={value}")
        return None


@attrs.frozen
class NodeSignals:
    """The signals of both classes."""

    drain_signals: SignalSet = SignalSet()
    fault_signals: SignalSet = SignalSet()

    @classmethod
    def of(cls, *, draining: Iterable[str], fault: Iterable[str]) -> "NodeSignals":
        return cls(SignalSet.of(draining), SignalSet.of(fault))

    def draining(self, node: Node) -> Signal | None:
        """Return why a node is about to be removed or restarted; None if it stays."""
        return self.drain_signals.find(node)

    def fault(self, node: Node) -> Signal | None:
        """Return which fault a node has; None if none is known."""
        return self.fault_signals.find(node)
