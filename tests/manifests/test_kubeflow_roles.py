"""The roles of Kubeflow's users for jobs, as in training-operator."""

import os
from pathlib import Path
from typing import Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.registry import load_frameworks
from tests.manifests.rendered import FOLDER, Objects, Render

_AGGREGATES: Final = "rbac.authorization.kubeflow.org/aggregate-to-kubeflow-"
READS: Final = {"get", "list", "watch"}
WRITES: Final = {"create", "delete", "patch", "update"}


@pytest.fixture
def rendered(kustomize: Render, tmp_path: Path) -> Objects:
    """The single namespace with the component: that one turns the roles it knows into others."""

    def relative(*parts: str) -> str:
        return os.path.relpath(FOLDER.joinpath(*parts), tmp_path)

    kustomization = {
        "resources": [relative("overlays", "single-namespace")],
        "components": [relative("components", "kubeflow-roles")],
        "namespace": "ml",
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return kustomize(tmp_path)


def roles(objects: Objects) -> dict[str, JSON]:
    found = {role["metadata"]["name"]: role for role in objects.of_kind("ClusterRole")}
    return {name.removeprefix("kubeflow-training-"): role for name, role in found.items()}


def granted(role: JSON, verb: str) -> set[str]:
    """Return the resources on which a role grants a verb."""
    return {name for rule in role["rules"] if verb in rule["verbs"] for name in rule["resources"]}


def test_every_role_aggregates_to_the_profiles_role(rendered: Objects) -> None:
    added_to = {
        name: {label.removeprefix(_AGGREGATES) for label in role["metadata"]["labels"]}
        for name, role in roles(rendered).items()
    }
    ours = "app.kubernetes.io/name"
    assert added_to == {
        "admin": {ours, "admin"},
        "edit": {ours, "edit", "training-admin"},
        "view": {ours, "view"},
    }
    (selector,) = roles(rendered)["admin"]["aggregationRule"]["clusterRoleSelectors"]
    assert selector == {"matchLabels": {f"{_AGGREGATES}training-admin": "true"}}


def test_roles_cover_every_kubeflow_kind(rendered: Objects) -> None:
    served = {
        k.resource.plural
        for k in served_kinds(load_frameworks().frameworks)
        if k.resource.group == "kubeflow.org"
    }
    edit, view = roles(rendered)["edit"], roles(rendered)["view"]
    for verb in READS | WRITES:
        assert served <= granted(edit, verb)
    for verb in READS:
        assert served <= granted(view, verb)
    assert {f"{plural}/status" for plural in served} <= granted(edit, "get") & granted(view, "get")


def test_viewers_change_nothing_and_no_role_writes_a_status(rendered: Objects) -> None:
    for name, role in roles(rendered).items():
        written = {resource for verb in WRITES for resource in granted(role, verb)}
        assert not any(resource.endswith("/status") for resource in written)
        assert name == "edit" or not written
