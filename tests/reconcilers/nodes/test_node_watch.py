"""The special nodes of a cluster, from the changes of all nodes."""

from typing import Any

import msgspec
import pytest

from dlctl.api.objects.node_signals import NodeSignals
from dlctl.api.objects.nodes import Node
from dlctl.informers.handlers import Change
from dlctl.reconcilers.nodes.node_states import NodeFault
from dlctl.reconcilers.nodes.node_watch import MAX_DELETED, NodeWatch

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


def faults(watch: NodeWatch) -> dict[str, str]:
    return {name: one.fault for name, one in watch.current.by_name.items() if one.fault}


@pytest.fixture
def watch() -> NodeWatch:
    return NodeWatch(NodeSignals.of(draining=["leaving"], sick=["Sick"]))


@pytest.mark.parametrize(
    ("shown", "kind", "fault"),
    [
        (node(Ready="True", Sick="True"), NodeFault.SICK, "has the condition Sick=True"),
        (node("node-a", "leaving", Sick="True"), NodeFault.SICK, "has the condition Sick=True"),
        (node(Ready="False"), NodeFault.DOWN, "is not ready"),
        (node(Ready="Unknown"), NodeFault.DOWN, "does not answer"),
        (node("node-a", OUT_OF_SERVICE, Ready="Unknown"), NodeFault.DOWN, "is out of"),
        (node("node-a", "leaving", Ready="Unknown"), NodeFault.DOWN, "does not answer"),
        (node("node-a", "leaving", Ready="True"), NodeFault.DRAINING, "has the taint leaving"),
    ],
)
def test_fault_of_a_node(shown: Node, kind: NodeFault, fault: str, watch: NodeWatch) -> None:
    watch.update(Change(None, shown))
    state = watch.current.by_name["node-a"]
    assert state.fault_kind is kind
    assert state.fault.startswith(fault)


def test_healthy_node_has_no_state(watch: NodeWatch) -> None:
    watch.update(Change(None, node(Ready="True")))
    assert watch.current.by_name == {}


def test_silent_node_is_lost_since_its_condition_changed(watch: NodeWatch) -> None:
    watch.update(Change(None, node(Ready="Unknown")))
    lost = watch.current.lost["node-a"]
    assert lost.silent_since is not None
    assert lost.silent_since.isoformat() == "2026-01-01T00:00:00+00:00"
    assert not lost.out_of_service


@pytest.mark.parametrize(("status", "is_down"), [("True", 0), ("False", 1), ("Unknown", 1)])
def test_node_is_down_since_its_condition_changed(
    status: str, is_down: bool, watch: NodeWatch
) -> None:
    watch.update(Change(None, node("node-a", "leaving", Ready=status)))
    since = watch.current.by_name["node-a"].down_since
    assert (since is not None) == is_down
    assert since is None or since.isoformat() == "2026-01-01T00:00:00+00:00"


def test_node_that_recovers_is_special_no_more(watch: NodeWatch) -> None:
    ill, well = node(Ready="Unknown", Sick="True"), node(Ready="True", Sick="False")
    watch.update(Change(None, ill))
    assert watch.update(Change(ill, well))
    assert not watch.current.by_name


def test_deleted_node_is_at_fault_until_it_is_back(watch: NodeWatch) -> None:
    watch.update(Change(None, node(Ready="True")))
    watch.update(Change(node(Ready="True"), None))
    assert faults(watch) == {"node-a": "was deleted"}
    assert watch.current.by_name["node-a"].hostname == "host-of-node-a"
    watch.update(Change(None, node(Ready="True")))
    assert not faults(watch)


def test_node_is_gone_if_it_is_none_of_the_nodes_that_are_known(watch: NodeWatch) -> None:
    # As right after the start.
    assert not watch.is_gone("node-a")
    watch.update(Change(None, node("node-b")))
    assert watch.is_gone("node-a")
    watch.update(Change(None, node("node-a")))
    assert not watch.is_gone("node-a")
    watch.update(Change(node("node-a"), None))
    assert watch.is_gone("node-a")


def test_no_node_is_gone_until_all_of_them_are_known(watch: NodeWatch) -> None:
    watch.is_synced = lambda: False
    watch.update(Change(None, node("node-b")))
    assert not watch.is_gone("node-a")
    assert watch.count == 0
    watch.is_synced = lambda: True
    assert watch.is_gone("node-a")
    assert watch.count == 1


def test_names_of_deleted_nodes_are_bounded(watch: NodeWatch) -> None:
    for number in range(MAX_DELETED + 10):
        watch.update(Change(node(f"node-{number}"), None))
    assert len(faults(watch)) == MAX_DELETED
    assert "node-0" not in faults(watch)


def test_report_that_changes_nothing_keeps_the_value(watch: NodeWatch) -> None:
    shown = node(Ready="True", Sick="True")
    watch.update(Change(None, shown))
    before = watch.current
    assert not watch.update(Change(shown, node(Ready="True", Sick="True")))
    assert watch.current is before
