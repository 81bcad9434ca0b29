"""Keeps the special nodes of the cluster by name, from the changes of all nodes.

Nodes report every few seconds; nearly all of these reports change nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import attrs

from dlctl.api.objects.node_signals import NodeSignals, Signal
from dlctl.api.objects.nodes import Node
from dlctl.informers.handlers import Change
from dlctl.reconcilers.nodes.node_states import (
    LostNode,
    NodeFault,
    NodeState,
    NodeStates,
    node_state,
)

# Names of deleted nodes are kept: their pods end after them.
MAX_DELETED: Final = 1000


@attrs.define(eq=False)
class NodeTracker:
    """The special nodes, kept up to date by :meth:`update`."""

    signals: NodeSignals = attrs.field(factory=NodeSignals)
    # Returns whether all nodes were listed: until then, a missing one may exist.
    is_synced: Callable[[], bool] = lambda: True
    _by_name: dict[str, NodeState] = attrs.field(init=False, factory=dict)
    # The newest last.
    _deleted: OrderedDict[str, str] = attrs.field(init=False, factory=OrderedDict)
    _current: NodeStates | None = attrs.field(init=False, default=None)
    # The hostnames of all nodes, by name.
    _hostnames: dict[str, str] = attrs.field(init=False, factory=dict)

    @property
    def count(self) -> int:
        """Return the number of nodes; 0 while they are not known."""
        return len(self._hostnames) if self.is_synced() else 0

    def is_gone(self, name: str) -> bool:
        """Return whether a node does not exist; False while the nodes are not known."""
        return name not in self._hostnames and bool(self.count)

    def hostname(self, name: str) -> str:
        """Return the hostname label of a node; of an unknown one, its name."""
        return self._hostnames.get(name, name)

    @property
    def current(self) -> NodeStates:
        """Return the special nodes; the same value until one of them changes."""
        if self._current is None:
            deleted = {
                name: NodeState(hostname, fault="was deleted", fault_kind=NodeFault.DELETED)
                for name, hostname in self._deleted.items()
            }
            self._current = NodeStates({**deleted, **self._by_name})
        return self._current

    def update(self, change: Change[Node]) -> bool:
        """Take over a change of a node; return whether its jobs have to act on it."""
        old, new = change.old, change.new
        if old is not None and new is not None and not change.initial and new.reports_as(old):
            return False
        name = change.key.name
        before = self._by_name.pop(name, None)
        after = None
        if new is not None:
            self._deleted.pop(name, None)
            self._hostnames[name] = new.hostname
            if after := node_state(new, self.signals):
                self._by_name[name] = after
        elif old is not None:
            self._hostnames.pop(name, None)
            self._deleted[name] = old.hostname
            if len(self._deleted) > MAX_DELETED:
                self._deleted.popitem(last=False)
        self._current = None
        return _urgent(before) != _urgent(after)


def _urgent(state: NodeState | None) -> tuple[Signal | None, LostNode | None]:
    return (state.draining, state.lost) if state else (None, None)
