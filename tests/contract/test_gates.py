"""Pods with scheduling gates."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import pod

GATE = {"name": "example.com/gang"}
OTHER = {"name": "other"}


async def test_pod_with_scheduling_gates_has_its_condition_at_creation(api: Api) -> None:
    created = await api.create(api.path("pods"), pod(schedulingGates=[GATE]))
    assert created["status"]["phase"] == "Pending"
    (condition,) = created["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"nodeName": "n", "schedulingGates": [GATE]},
            (
                '422 Invalid: [FieldValueForbidden spec.nodeName] Pod "a" is invalid: '
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have "
                "been cleared"
            ),
            id="node",
        ),
        pytest.param(
            {"schedulingGates": [GATE, GATE]},
            (
                '422 Invalid: [FieldValueDuplicate spec.schedulingGates[1]] Pod "a" is '
                "invalid: spec.schedulingGates[1]: Duplicate value: "
                '"example.com/gang"'
            ),
            id="twice",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "A b"}]},
            (
                '422 Invalid: [FieldValueInvalid spec.schedulingGates[0]] Pod "a" is '
                'invalid: spec.schedulingGates[0]: Invalid value: "A b": name part must '
                "consist of alphanumeric characters, '-', '_' or '.', and must start and "
                "end with an alphanumeric character"
            ),
            id="name",
        ),
    ],
)
async def test_invalid_scheduling_gates_are_rejected(api: Api, spec: JSON, said: str) -> None:
    answer = await api.post(api.path("pods"), pod(**spec))
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("before", "change", "said"),
    [
        pytest.param(
            [GATE],
            {"schedulingGates": [GATE, OTHER]},
            (
                '422 Invalid: [FieldValueForbidden spec.schedulingGates[1].name] Pod "a" '
                "is invalid: spec.schedulingGates[1].name: Forbidden: only deletion is "
                "allowed, but found new scheduling gate 'other'"
            ),
            id="one more",
        ),
        pytest.param(
            [],
            {"schedulingGates": [GATE]},
            (
                '422 Invalid: [FieldValueForbidden spec.schedulingGates[0].name] Pod "a" '
                "is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is "
                "allowed, but found new scheduling gate 'example.com/gang'"
            ),
            id="the first",
        ),
        pytest.param(
            [GATE],
            {"nodeSelector": {"zone": "b"}},
            (
                '422 Invalid: [FieldValueInvalid spec.nodeSelector] Pod "a" is invalid: '
                "spec.nodeSelector: Invalid value: OBJECT: only additions to "
                "spec.nodeSelector are allowed (no mutations or deletions)"
            ),
            id="another node",
        ),
    ],
)
async def test_gates_can_only_be_removed(
    api: Api, before: list[JSON], change: JSON, said: str
) -> None:
    body = pod(schedulingGates=before, nodeSelector={"zone": "a"})
    await api.create(api.path("pods"), body)
    answer = await api.patch(api.path("pods", "a"), {"spec": change})
    assert api.failure_text(answer) == said


@pytest.mark.parametrize("change", [{"nodeName": "n"}, {"nodeSelector": {"zone": "a"}}])
async def test_ungated_pod_keeps_its_node_selector(api: Api, change: JSON) -> None:
    await api.create(api.path("pods"), pod())
    answer = await api.patch(api.path("pods", "a"), {"spec": change})
    assert api.failure_text(answer).startswith(
        '422 Invalid: [FieldValueForbidden spec] Pod "a" is invalid: spec: Forbidden: pod updates'
    )


async def test_gates_are_removed_one_by_one_and_node_selectors_narrowed(api: Api) -> None:
    await api.create(api.path("pods"), pod(schedulingGates=[GATE, OTHER]))
    change = {"schedulingGates": [OTHER], "nodeSelector": {"zone": "a"}}
    answer = await api.patch(api.path("pods", "a"), {"spec": change})
    assert (answer.code, answer.body["spec"]["schedulingGates"]) == (200, [OTHER])
    answer = await api.patch(api.path("pods", "a"), {"spec": {"schedulingGates": None}})
    assert answer.code == 200
    assert "schedulingGates" not in answer.body["spec"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(
            "a",
            (
                '409 Conflict: Operation cannot be fulfilled on pods/binding "a": pod a '
                "has non-empty .spec.schedulingGates"
            ),
            id="gated",
        ),
        pytest.param(
            "b",
            "400 BadRequest: name in URL does not match name in Binding object",
            id="name of another",
        ),
    ],
)
async def test_pod_with_gates_is_not_bound(api: Api, name: str, said: str) -> None:
    await api.create(api.path("pods"), pod(schedulingGates=[GATE]))
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
    answer = await api.post(api.path("pods", "a/binding"), binding)
    assert api.failure_text(answer).replace("[] ", "") == said
