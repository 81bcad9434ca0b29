"""The default ClusterRoles of a cluster that continues."""

from pathlib import Path

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CLUSTER_ROLES, ObjectKey
from dlctl.kube.client import Client
from dlctl.local.apiserver.server import ApiServer, serve
from dlctl.local.apiserver.storage.journal import Journal

VIEW = ObjectKey("", "view")
OWN_RULE = {"apiGroups": ["a.b"], "resources": ["c"], "verbs": ["get"]}


def view(server: ApiServer) -> JSON:
    stored = server.storage.get(CLUSTER_ROLES, VIEW)
    assert stored is not None
    return stored.decoded(CLUSTER_ROLES)


@pytest.mark.parametrize(("autoupdate", "is_completed"), [("true", True), ("false", False)])
async def test_default_role_gets_the_rules_that_it_lacks(
    tmp_path: Path, autoupdate: str, is_completed: bool
) -> None:
    annotations = {"rbac.authorization.kubernetes.io/autoupdate": autoupdate}
    change = {"rules": [OWN_RULE], "metadata": {"annotations": annotations}}
    with Journal.open(tmp_path / "objects") as journal:
        async with serve(tls=False, journal=journal) as server:
            created = view(server)["rules"]
            async with Client(server.config()) as client:
                await client.patch(CLUSTER_ROLES, VIEW, change)
    with Journal.open(tmp_path / "objects") as journal:
        async with serve(tls=False, journal=journal) as server:
            rules = view(server)["rules"]
    assert rules == ([OWN_RULE, *created] if is_completed else [OWN_RULE])


async def test_complete_default_role_is_not_written_again(tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        with Journal.open(tmp_path / "objects") as journal:
            async with serve(tls=False, journal=journal) as server:
                seen.append(view(server)["metadata"]["resourceVersion"])
    assert seen[0] == seen[1]
