"""The special nodes of a cluster, from the changes of all nodes."""

from typing import Any

import msgspec
import pytest

from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import Node
from dlctl.informers.handlers import Change
from dlctl.reconcilers.nodes.node_states import NodeFault
from dlctl.reconcilers.nodes.node_tracker import MAX_DELETED, NodeTracker

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
SINCE = "2026-01-01T00:00:00Z"


def node(name: str = "node-a", *taints: str, **conditions: str) -> Node:
    wire: dict[str, Any] = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": f"host-of-{name}"}},
        "spec": {"taints": [{"key": key} for key in taints]},
        "status": {
            "conditions": [
                {"type": type_, "status": status, "lastTransitionTime": SINCE}
                for type_, status in conditions.items()
            ]
        },
    }
    return msgspec.convert(wire, Node)


def faults(tracker: NodeTracker) -> dict[str, str]:
    return {name: one.fault for name, one in tracker.current.by_name.items() if one.fault}


@pytest.fixture
def tracker() -> NodeTracker:
    return NodeTracker(NodeSignals.of(draining=["leaving"], fault=["Sick"]))


@pytest.mark.parametrize(
    ("shown", "kind", "fault"),
    [
        (node(Ready="True", Sick="True"), NodeFault.UNHEALTHY, "has the condition Sick=True"),
        (
            node("node-a", "leaving", Sick="True"),
            NodeFault.UNHEALTHY,
            "has the condition Sick=True",
        ),
        (node(Ready="False"), NodeFault.DOWN, "is not ready"),
        (node(Ready="Unknown"), NodeFault.DOWN, "does not answer"),
        (node("node-a", OUT_OF_SERVICE, Ready="Unknown"), NodeFault.DOWN, "is out of"),
        (node("node-a", "leaving", Ready="Unknown"), NodeFault.DOWN, "does not answer"),
        (node("node-a", "leaving", Ready="True"), NodeFault.DRAINING, "has the taint leaving"),
    ],
)
def test_fault_of_a_node(shown: Node, kind: NodeFault, fault: str, tracker: NodeTracker) -> None:
    tracker.update(Change(None, shown))
    state = tracker.current.by_name["node-a"]
    assert state.fault_kind is kind
    assert state.fault.startswith(fault)


def test_healthy_node_has_no_state(tracker: NodeTracker) -> None:
    tracker.update(Change(None, node(Ready="True")))
    assert tracker.current.by_name == {}


def test_silent_node_is_lost_since_its_condition_changed(tracker: NodeTracker) -> None:
    tracker.update(Change(None, node(Ready="Unknown")))
    lost = tracker.current.lost["node-a"]
    assert lost.silent_since is not None
    assert lost.silent_since.isoformat() == "2026-01-01T00:00:00+00:00"
    assert not lost.out_of_service


@pytest.mark.parametrize(("status", "is_down"), [("True", 0), ("False", 1), ("Unknown", 1)])
def test_node_is_down_since_its_condition_changed(
    status: str, is_down: bool, tracker: NodeTracker
) -> None:
    tracker.update(Change(None, node("node-a", "leaving", Ready=status)))
    since = tracker.current.by_name["node-a"].down_since
    assert (since is not None) == is_down
    assert since is None or since.isoformat() == "2026-01-01T00:00:00+00:00"


def test_node_that_recovers_is_special_no_more(tracker: NodeTracker) -> None:
    ill, well = node(Ready="Unknown", Sick="True"), node(Ready="True", Sick="False")
    tracker.update(Change(None, ill))
    assert tracker.update(Change(ill, well))
    assert not tracker.current.by_name


def test_deleted_node_is_at_fault_until_it_is_back(tracker: NodeTracker) -> None:
    tracker.update(Change(None, node(Ready="True")))
    tracker.update(Change(node(Ready="True"), None))
    assert faults(tracker) == {"node-a": "was deleted"}
    assert tracker.current.by_name["node-a"].hostname == "host-of-node-a"
    tracker.update(Change(None, node(Ready="True")))
    assert not faults(tracker)


def test_node_is_gone_if_it_is_none_of_the_nodes_that_are_known(tracker: NodeTracker) -> None:
    # As right after the start.
    assert not tracker.is_gone("node-a")
    tracker.update(Change(None, node("node-b")))
    assert tracker.is_gone("node-a")
    tracker.update(Change(None, node("node-a")))
    assert not tracker.is_gone("node-a")
    tracker.update(Change(node("node-a"), None))
    assert tracker.is_gone("node-a")


def test_no_node_is_gone_until_all_of_them_are_known(tracker: NodeTracker) -> None:
    tracker.is_synced = lambda: False
    tracker.update(Change(None, node("node-b")))
    assert not tracker.is_gone("node-a")
    assert tracker.count == 0
    tracker.is_synced = lambda: True
    assert tracker.is_gone("node-a")
    assert tracker.count == 1


def test_names_of_deleted_nodes_are_bounded(tracker: NodeTracker) -> None:
    for number in range(MAX_DELETED + 10):
        tracker.update(Change(node(f"node-{number}"), None))
    assert len(faults(tracker)) == MAX_DELETED
    assert "node-0" not in faults(tracker)


def test_report_that_changes_nothing_keeps_the_value(tracker: NodeTracker) -> None:
    shown = node(Ready="True", Sick="True")
    tracker.update(Change(None, shown))
    before = tracker.current
    assert not tracker.update(Change(shown, node(Ready="True", Sick="True")))
    assert tracker.current is before
