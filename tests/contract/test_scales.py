"""The scale subresource of a custom resource, and invalid requests to it."""

import pytest

from dlctl.api.json_types import JSON
from tests.contract.api import Api
from tests.contract.definitions import V1, gadget


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"spec": {"replicas": -1}},
            (
                "422 Invalid: [FieldValueInvalid .spec.replicas] "
                'Gadget.contract.dlctl.dev "a" is invalid: .spec.replicas: Invalid value:'
                " -1: should be a non-negative integer"
            ),
            id="negative",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}},
            (
                "409 Conflict: Operation cannot be fulfilled on "
                'gadgets.contract.dlctl.dev "a": the object has been modified; please '
                "apply your changes to the latest version and try again"
            ),
            id="old version",
        ),
    ],
)
async def test_invalid_scale_is_rejected(gadget_api: Api, change: JSON, said: str) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget(replicas=1))
    answer = await gadget_api.patch(gadget_api.path("gadgets", "a/scale", group=V1), change)
    assert gadget_api.failure_text(answer) == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(
            "b/scale", '404 NotFound: gadgets.contract.dlctl.dev "b" not found', id="no object"
        ),
        pytest.param(
            "a/scale",
            (
                "500 InternalError: [] Internal error occurred: the spec replicas field "
                '".spec.replicas" does not exist'
            ),
            id="no replicas",
        ),
    ],
)
async def test_missing_scale_subresource_is_rejected(gadget_api: Api, name: str, said: str) -> None:
    await gadget_api.create(gadget_api.path("gadgets", group=V1), gadget())
    answer = await gadget_api.get(gadget_api.path("gadgets", name, group=V1))
    assert gadget_api.failure_text(answer) == said
