"""The rights on PodGroups: only with a gang scheduler."""

from pathlib import Path

import pytest

from dlctl.api.json_types import JSON
from dlctl.dialects.rbac import cluster_role
from tests.builders import KINDS
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import Objects, Render, with_component
from tests.support.pod_groups import kinds_with_gangs

SCHEDULERS = {"volcano": "volcano", "scheduler-plugins": "scheduler-plugins-scheduler"}


def needed(scheduler: str) -> list[JSON]:
    """Return the rights that the role lacks for this scheduler."""
    without = cluster_role(KINDS)["rules"]
    return [
        rule for rule in cluster_role(kinds_with_gangs(scheduler))["rules"] if rule not in without
    ]


def about_pod_groups(objects: Objects) -> list[JSON]:
    return [rule for rule in rules(objects) if "podgroups" in rule["resources"]]


def test_without_a_gang_scheduler_nothing_is_granted(helm: Render, kustomize: Render) -> None:
    assert about_pod_groups(helm()) == about_pod_groups(kustomize("cluster-wide")) == []
    assert about_pod_groups(helm("settings.gang-scheduler-name=none")) == []


@pytest.mark.parametrize("overlay", ["cluster-wide", "single-namespace"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_component_sets_the_scheduler_and_grants_its_rights(
    kustomize: Render, tmp_path: Path, name: str, overlay: str
) -> None:
    rendered = kustomize(with_component(tmp_path, overlay, "gang-scheduling", name))
    assert about_pod_groups(rendered) == needed(SCHEDULERS[name])
    assert effective(rendered.container()).gang_scheduler_name == SCHEDULERS[name]


@pytest.mark.parametrize("scheduler", ["volcano", "our-own"])
@pytest.mark.parametrize("namespace", [[], ["singleNamespace=true"]], ids=["all", "one"])
def test_chart_grants_the_rights_for_the_configured_scheduler(
    helm: Render, scheduler: str, namespace: list[str]
) -> None:
    chart = helm(f"settings.gang-scheduler-name={scheduler}", *namespace)
    assert about_pod_groups(chart) == needed(scheduler)
    assert effective(chart.container()).gang_scheduler_name == scheduler
