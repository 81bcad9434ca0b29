"""The role follows from the kinds."""

from pathlib import Path

import yaml

from dlctl.dialects.rbac import cluster_role
from tests.builders import KINDS, kind_of

MANIFEST = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"


def test_manifest_is_the_role_of_the_built_in_kinds() -> None:
    assert yaml.safe_load(MANIFEST.read_text()) == cluster_role(KINDS)


def test_role_has_no_wildcard() -> None:
    for rule in cluster_role(KINDS)["rules"]:
        assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}


def test_secrets_are_created_and_never_read() -> None:
    of_secrets = [rule for rule in cluster_role(KINDS)["rules"] if "secrets" in rule["resources"]]
    assert [(rule["resources"], rule["verbs"]) for rule in of_secrets] == [
        (["secrets"], ["create"])
    ]


def test_kinds_without_launchers_need_neither_secrets_nor_exec() -> None:
    rules = cluster_role([kind_of("kubeflow.org/v1", "TFJob")])["rules"]
    assert not {"secrets", "pods/exec"} & {name for rule in rules for name in rule["resources"]}


def test_role_can_patch_scalers_and_their_status() -> None:
    rules = cluster_role([kind_of("kai.alibabacloud.com/v1alpha1", "TrainingJob")])["rules"]
    granted = {name: rule["verbs"] for rule in rules for name in rule["resources"]}
    for plural in ("scaleins", "scaleouts"):
        assert granted[plural] == ["list", "watch", "patch", "delete"]
        assert granted[f"{plural}/status"] == ["patch"]
