"""Termination messages: which containers report the end of their logs."""

from dlctl.api.json_types import JSON
from dlctl.reconcilers.children.termination_messages import with_termination_messages


def policies(containers: list[JSON]) -> dict[str, str | None]:
    return {one["name"]: one.get("terminationMessagePolicy") for one in containers}


def test_training_container_reports_the_end_of_its_log() -> None:
    spec: JSON = {"containers": [{"name": "pytorch"}, {"name": "sidecar"}]}
    made = with_termination_messages(spec, "pytorch")
    assert policies(made["containers"]) == {"pytorch": "FallbackToLogsOnError", "sidecar": None}
    assert "initContainers" not in made


def test_policy_of_the_user_is_kept() -> None:
    spec: JSON = {"containers": [{"name": "pytorch", "terminationMessagePolicy": "File"}]}
    assert policies(with_termination_messages(spec, "pytorch")["containers"]) == {"pytorch": "File"}


def test_init_containers_report_unless_they_are_sidecars() -> None:
    init: list[JSON] = [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}]
    spec: JSON = {"containers": [{"name": "pytorch"}], "initContainers": init}
    made = with_termination_messages(spec, "pytorch")
    assert policies(made["initContainers"]) == {"fetch": "FallbackToLogsOnError", "proxy": None}
