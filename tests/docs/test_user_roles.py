"""The roles for users on the page about installation cover all kinds."""

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.dialects.kind import Kind
from dlctl.dialects.kind_crds import kind_crds
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
    scaled = [kind.resource for kind in KINDS if "scale" in _subresources(kind)]
    jobs, scale = role["rules"]
    assert set(jobs["apiGroups"]) == {one.group for one in resources}
    assert set(jobs["resources"]) == {one.plural for one in resources}
    assert set(scale["apiGroups"]) == {one.group for one in scaled}
    assert set(scale["resources"]) == {f"{one.plural}/scale" for one in scaled}


def _subresources(kind: Kind) -> set[str]:
    versions = [version for crd in kind_crds(kind) for version in crd["spec"]["versions"]]
    return {name for version in versions for name in version["subresources"]}


def test_there_is_a_role_to_edit_and_one_to_view() -> None:
    assert [role["metadata"]["name"] for role in _ROLES] == ["dlctl-jobs-edit", "dlctl-jobs-view"]
