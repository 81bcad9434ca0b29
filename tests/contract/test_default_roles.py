"""The ClusterRoles of a new cluster, for the resources that the embedded server serves."""

import itertools
from collections.abc import Iterable, Iterator

import pytest

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.auth.default_roles import DEFAULT_CLUSTER_ROLES
from tests.contract.api import Api

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
Right = tuple[str, str, str]


def rights(rules: Iterable[JSON]) -> Iterator[Right]:
    for rule in rules:
        parts = (rule.get(field) or () for field in ("apiGroups", "resources", "verbs"))
        yield from itertools.product(*parts)


OURS = {role["metadata"]["name"]: set(rights(role["rules"])) for role in DEFAULT_CLUSTER_ROLES}
RESOURCES = {(group, resource) for group, resource, _ in OURS["admin"]}


@pytest.mark.parametrize("name", ["cluster-admin", "admin", "edit", "view"])
async def test_default_cluster_role_grants_what_it_does_on_a_cluster(api: Api, name: str) -> None:
    role = (await api.get(f"{ROLES}/{name}")).body
    granted = set(rights(role["rules"]))
    shown = {right for right in granted if right[:2] in RESOURCES or name == "cluster-admin"}
    # Service accounts do not impersonate others there.
    assert {right for right in shown if right[2] != "impersonate"} == OURS[name]
