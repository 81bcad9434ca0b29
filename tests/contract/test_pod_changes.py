"""Invalid changes, bindings and evictions of pods."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.objects import pod
from tests.local.apiserver.raw_client import STRATEGIC


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "b", "image": "x"}]}},
            (
                '422 Invalid: [FieldValueForbidden spec.containers] Pod "a" is invalid: '
                "spec.containers: Forbidden: pod updates may not add or remove containers"
            ),
            id="another container",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "command": ["x"]}]}},
            (
                '422 Invalid: [FieldValueForbidden spec] Pod "a" is invalid: spec: '
                "Forbidden: pod updates may not change fields other than `spec.containers"
                "[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`"
                "spec.tolerations` (only additions to existing "
                "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to"
                " 1 if it was previously negative)"
            ),
            id="command",
        ),
        pytest.param(
            {"spec": {"activeDeadlineSeconds": 9}},
            (
                '422 Invalid: [FieldValueInvalid spec.activeDeadlineSeconds] Pod "a" is '
                "invalid: spec.activeDeadlineSeconds: Invalid value: 9: must be less than"
                " or equal to previous value"
            ),
            id="later deadline",
        ),
        pytest.param(
            {"spec": {"activeDeadlineSeconds": None}},
            (
                '422 Invalid: [FieldValueInvalid spec.activeDeadlineSeconds] Pod "a" is '
                "invalid: spec.activeDeadlineSeconds: Invalid value: null: must not "
                "update from a positive integer to nil value"
            ),
            id="no deadline",
        ),
    ],
)
async def test_forbidden_change_of_a_pod_is_invalid(api: Api, change: JSON, said: str) -> None:
    await api.create(api.path("pods"), pod(activeDeadlineSeconds=5))
    answer = await api.patch(api.path("pods", "a"), change, STRATEGIC)
    assert api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        pytest.param(
            "bound/binding",
            {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "m"}},
            (
                '409 Conflict: Operation cannot be fulfilled on pods/binding "bound": pod'
                ' bound is already assigned to node "n"'
            ),
            id="bound already",
        ),
        pytest.param(
            "none/binding",
            {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "m"}},
            '404 NotFound: pods "none" not found',
            id="binding of none",
        ),
        pytest.param(
            "bound/binding",
            {"metadata": {"name": "bound"}, "target": {}},
            "500 : target.name: Required value",
            id="to no node",
        ),
        pytest.param(
            "bound/binding",
            {"metadata": {"name": "bound"}, "target": "n"},
            '400 BadRequest: Binding in version "v1" cannot be handled as a Binding: json: cannot '
            "unmarshal string into Go struct field Binding.target of type v1.ObjectReference",
            id="to a text",
        ),
        pytest.param(
            "bound/eviction",
            {"metadata": {"name": "bound"}, "deleteOptions": {"gracePeriodSeconds": "x"}},
            '400 BadRequest: Eviction in version "v1" cannot be handled as a Eviction: json: '
            "cannot unmarshal string into Go struct field "
            "DeleteOptions.deleteOptions.gracePeriodSeconds of type int64",
            id="eviction with a text for a number",
        ),
        pytest.param(
            "bound/eviction",
            {
                "apiVersion": "policy/v1beta1",
                "kind": "Eviction",
                "metadata": {"name": "other"},
            },
            "400 BadRequest: name in URL does not match name in Eviction object",
            id="former eviction of another pod",
        ),
        pytest.param(
            "bound/eviction",
            {"metadata": {"name": "other"}},
            "400 BadRequest: name in URL does not match name in Eviction object",
            id="eviction of another pod",
        ),
        pytest.param(
            "none/eviction",
            {"metadata": {"name": "none"}},
            '404 NotFound: pods "none" not found',
            id="eviction of none",
        ),
    ],
)
async def test_impossible_binding_and_eviction_are_rejected(
    api: Api, path: str, body: object, said: str
) -> None:
    await api.create(api.path("pods"), pod("bound", node="n"))
    answer = await api.post(api.path("pods", path), body)
    assert api.failure_text(answer) == said
