"""Amounts of resources that containers may have."""

import pytest

from dlctl.local.apiserver.validation.containers import container_errors

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("resource", "amount", "accepted"),
    [
        pytest.param(GPU, "500m", False, id="half a GPU"),
        pytest.param(GPU, "1500m", False, id="one and a half"),
        pytest.param(GPU, "2", True, id="GPUs"),
        pytest.param(GPU, "2000m", True, id="GPUs in thousandths"),
        pytest.param(GPU, "1e60", True, id="many GPUs"),
        pytest.param("cpu", "500m", True, id="half a CPU"),
    ],
)
def test_extended_resource_is_an_integer(resource: str, amount: str, accepted: bool) -> None:
    resources = {"limits": {resource: amount}}
    container = {"name": "main", "image": "any", "resources": resources}
    found = [str(error.message) for error in container_errors(container, "c", set())]
    rejections = [message for message in found if "must be an integer" in message]
    assert len(rejections) == (0 if accepted else 1)
