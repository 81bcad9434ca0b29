"""The role follows from the kinds."""

from pathlib import Path

import yaml

from dlctl.dialects.rbac import cluster_role
from tests.builders import KINDS

MANIFEST = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"


def test_manifest_is_the_role_of_the_kinds_that_are_built_in() -> None:
    assert yaml.safe_load(MANIFEST.read_text()) == cluster_role(KINDS)


def test_role_has_no_wildcard_and_no_secret() -> None:
    for rule in cluster_role(KINDS)["rules"]:
        named = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not named & {"*", "secrets"}
