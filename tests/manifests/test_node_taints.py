"""The right to patch nodes: only with the setting that needs it."""

from pathlib import Path

from dlctl.api.json_types import JSON
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import Objects, Render, with_component

READ: JSON = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
WRITE: JSON = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}


def about_nodes(objects: Objects) -> list[JSON]:
    return [rule for rule in rules(objects) if "nodes" in rule["resources"]]


def test_nodes_are_only_read_by_default(helm: Render, kustomize: Render) -> None:
    assert about_nodes(helm()) == about_nodes(kustomize("cluster-wide")) == [READ]


def test_component_sets_the_setting_and_grants_its_rights(
    kustomize: Render, tmp_path: Path
) -> None:
    rendered = kustomize(with_component(tmp_path, "cluster-wide", "taint-charged-nodes"))
    assert about_nodes(rendered) == [READ, WRITE]
    assert effective(rendered.container()).taint_charged_nodes


def test_chart_grants_the_rights_of_the_setting(helm: Render) -> None:
    chart = helm("settings.taint-charged-nodes=true")
    assert about_nodes(chart) == [READ, WRITE]
    assert effective(chart.container()).taint_charged_nodes
