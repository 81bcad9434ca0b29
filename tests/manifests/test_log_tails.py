"""The right to read logs: only with the setting that needs it."""

from pathlib import Path

import pytest

from dlctl.api.json_types import JSON
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import Objects, Render, with_component

READ: JSON = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}


def about_logs(objects: Objects) -> list[JSON]:
    return [rule for rule in rules(objects) if "pods/log" in rule["resources"]]


def test_logs_are_not_read_by_default(helm: Render, kustomize: Render) -> None:
    assert about_logs(helm()) == about_logs(kustomize("cluster-wide")) == []
    assert about_logs(helm("settings.failure-log-tails=0")) == []


@pytest.mark.parametrize("overlay", ["cluster-wide", "single-namespace"])
def test_component_sets_the_setting_and_grants_its_rights(
    kustomize: Render, tmp_path: Path, overlay: str
) -> None:
    rendered = kustomize(with_component(tmp_path, overlay, "failure-log-tails"))
    assert about_logs(rendered) == [READ]
    assert effective(rendered.container()).failure_log_tails == 4


@pytest.mark.parametrize("namespace", [[], ["singleNamespace=true"]], ids=["all", "one"])
def test_chart_grants_the_rights_of_the_setting(helm: Render, namespace: list[str]) -> None:
    chart = helm("settings.failure-log-tails=4", *namespace)
    assert about_logs(chart) == [READ]
    assert effective(chart.container()).failure_log_tails == 4
