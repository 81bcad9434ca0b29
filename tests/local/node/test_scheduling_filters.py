"""Which pods the node can take, and the words of a refusal."""

from typing import Any

import pytest

from dlctl.local.node.scheduling_filters import rejection
from tests.local.node.builders import GPU, make_container, make_node, make_pod

SELECTOR = "1 node(s) didn't match Pod's node affinity/selector"


def requesting(count: int) -> Any:
    return make_pod(containers=[make_container(resources={"limits": {GPU: str(count)}})])


def affinity(*expressions: dict[str, Any], field: str = "matchExpressions") -> dict[str, Any]:
    terms = [{field: [expression]} for expression in expressions]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


@pytest.mark.parametrize(
    ("gpus", "used", "numbers"),
    [
        (2, 0, ""),
        (2, 1, "requests 2, and 1 of 2 are in use"),
        (1, 0, "requests 2, and this machine has 1"),
        (0, 0, "requests 2, and this machine has none"),
    ],
    ids=["free", "taken", "too many", "none"],
)
def test_pod_needs_free_gpus(gpus: int, used: int, numbers: str) -> None:
    message = rejection(requesting(2), make_node(gpus=gpus), {GPU: used}, {GPU})
    assert (message == "") is (numbers == "")
    if numbers:
        assert message.startswith(f"0/1 nodes are available: 1 Insufficient {GPU}. ")
        assert numbers in message
        assert "--ignore-gpus" in message


def test_gpus_that_do_not_count_are_not_needed() -> None:
    assert rejection(requesting(8), make_node(), {}, ()) == ""


def test_cpu_and_memory_are_not_compared() -> None:
    pod = make_pod(containers=[make_container(resources={"requests": {"cpu": "512"}})])
    assert rejection(pod, make_node(), {}, {GPU}) == ""


def test_node_selector_needs_the_labels_and_the_refusal_names_them() -> None:
    pod = make_pod(nodeSelector={"zone": "a", "accelerator": "a100"})
    assert rejection(pod, make_node(labels={"zone": "a", "accelerator": "a100"}), {}, ()) == ""
    message = rejection(pod, make_node(labels={"zone": "a"}), {}, ())
    assert message.startswith(f"0/1 nodes are available: {SELECTOR}.")
    assert "--node-label accelerator=a100" in message
    assert "zone" not in message


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"operator": "In", "values": ["a", "b"]}, True),
        ({"operator": "In", "values": ["c"]}, False),
        ({"operator": "NotIn", "values": ["c"]}, True),
        ({"operator": "NotIn", "values": ["a"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
        ({"key": "size", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "size", "operator": "Gt", "values": ["8"]}, False),
        ({"key": "size", "operator": "Lt", "values": ["9"]}, True),
        ({"operator": "Lt", "values": ["9"]}, False),
    ],
)
def test_required_node_affinity(expression: dict[str, Any], matches: bool) -> None:
    pod = make_pod(affinity=affinity({"key": "zone", **expression}))
    node = make_node(labels={"zone": "a", "size": "8"})
    assert (rejection(pod, node, {}, ()) == "") is matches


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ({"operator": "In", "values": ["b", "c"]}, "--node-label zone=b gives this machine"),
        ({"key": "gpu", "operator": "Exists"}, "--node-label gpu=true gives this machine"),
        # It has another value already.
        ({"operator": "NotIn", "values": ["a"]}, ""),
        ({"key": "size", "operator": "Gt", "values": ["8"]}, ""),
    ],
)
def test_refusal_by_an_affinity_names_the_label_that_helps(
    expression: dict[str, Any], hint: str
) -> None:
    pod = make_pod(affinity=affinity({"key": "zone", **expression}))
    message = rejection(pod, make_node(labels={"zone": "a"}), {}, ())
    assert SELECTOR in message
    assert hint in message
    assert ("--node-label" in message) is bool(hint)


def test_one_term_of_several_is_enough_and_an_empty_one_matches_nothing() -> None:
    absent = {"key": "absent", "operator": "Exists"}
    present = {"key": "zone", "operator": "Exists"}
    node = make_node(labels={"zone": "a"})
    assert rejection(make_pod(affinity=affinity(absent, present)), node, {}, ()) == ""
    required: Any = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    empty = make_pod(affinity={"nodeAffinity": required})
    assert SELECTOR in rejection(empty, node, {}, ())


@pytest.mark.parametrize(("name", "matches"), [("localhost", True), ("other", False)])
def test_node_affinity_to_a_name(name: str, matches: bool) -> None:
    requirement = {"key": "metadata.name", "operator": "In", "values": [name]}
    pod = make_pod(affinity=affinity(requirement, field="matchFields"))
    assert (rejection(pod, make_node(), {}, ()) == "") is matches


def test_cordoned_node_takes_no_pods() -> None:
    message = rejection(make_pod(), make_node(unschedulable=True), {}, ())
    assert message == "0/1 nodes are available: 1 node(s) were unschedulable."
