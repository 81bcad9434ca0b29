"""The state of pods whose status lacks fields that a kubelet writes."""

import msgspec
import pytest

from dlctl.api.json_types import JSON
from dlctl.local.job_controller.pod_state import finished_at, is_ready
from dlctl.local.node.api_types import NodePod
from tests.local.job_controller.builders import NOW, ago, make_pod


def with_conditions(*conditions: JSON) -> NodePod:
    status = {"phase": "Running", "conditions": list(conditions)}
    return msgspec.structs.replace(make_pod(), status=status)


@pytest.mark.parametrize("condition", [{}, {"type": "Ready"}, {"status": "True"}])
def test_pod_with_an_incomplete_condition_is_not_ready(condition: JSON) -> None:
    assert not is_ready(with_conditions(condition))
    assert is_ready(with_conditions(condition, {"type": "Ready", "status": "True"}))


def test_end_of_a_pod_is_found_behind_an_incomplete_condition() -> None:
    times = {"lastTransitionTime": ago(0)}
    found = with_conditions(times, {"type": "Ready", "status": "False"} | times)
    assert finished_at(found) == NOW
