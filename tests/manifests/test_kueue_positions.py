"""The right to read positions in Kueue's queues: only with the setting that needs it."""

from pathlib import Path

import pytest

from dlctl.api.json_types import JSON
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import Objects, Render, with_component

GROUP = "visibility.kueue.x-k8s.io"
READ: JSON = {
    "apiGroups": [GROUP],
    "resources": ["localqueues/pendingworkloads"],
    "verbs": ["get"],
}


def about_queues(objects: Objects) -> list[JSON]:
    return [rule for rule in rules(objects) if GROUP in rule["apiGroups"]]


def test_positions_are_not_read_by_default(helm: Render, kustomize: Render) -> None:
    assert about_queues(helm()) == about_queues(kustomize("cluster-wide")) == []
    assert about_queues(helm("settings.kueue-positions=false")) == []


@pytest.mark.parametrize("overlay", ["cluster-wide", "single-namespace"])
def test_component_sets_the_setting_and_grants_its_rights(
    kustomize: Render, tmp_path: Path, overlay: str
) -> None:
    rendered = kustomize(with_component(tmp_path, overlay, "kueue-positions"))
    assert about_queues(rendered) == [READ]
    assert effective(rendered.container()).kueue_positions


@pytest.mark.parametrize("namespace", [[], ["singleNamespace=true"]], ids=["all", "one"])
def test_chart_grants_the_rights_of_the_setting(helm: Render, namespace: list[str]) -> None:
    chart = helm("settings.kueue-positions=true", *namespace)
    assert about_queues(chart) == [READ]
    assert effective(chart.container()).kueue_positions
