"""The roles for users on the page about installation cover all kinds."""

import pytest
import yaml

from dlctl.api.json_types import JSON
from tests.builders import KINDS
from tests.docs.pages import ROOT, blocks

_ROLES: list[JSON] = [
    document
    for block in blocks(ROOT / "docs/operate/install.md")
    if "kind: ClusterRole" in block.text
    for document in yaml.safe_load_all(block.text)
]


@pytest.mark.parametrize("role", _ROLES, ids=lambda role: role["metadata"]["name"])
def test_role_for_users_covers_all_kinds(role: JSON) -> None:
    resources = [one for kind in KINDS for one in (kind.resource, *kind.scalers)]
    rule = role["rules"][0]
    assert set(rule["apiGroups"]) == {one.group for one in resources}
    assert set(rule["resources"]) == {one.plural for one in resources}


def test_there_is_a_role_to_edit_and_one_to_view() -> None:
    assert [role["metadata"]["name"] for role in _ROLES] == ["dlctl-jobs-edit", "dlctl-jobs-view"]
