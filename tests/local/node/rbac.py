"""Accounts and their roles, for tests of pods that use the API."""

from dlctl.api.meta import Resource
from tests.local.node.harness import NodeHarness

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_GROUP = "rbac.authorization.k8s.io"
_ROLES = Resource(_GROUP, "v1", "roles", "Role")
_BINDINGS = Resource(_GROUP, "v1", "rolebindings", "RoleBinding")


async def grant(harness: NodeHarness, name: str, *rules: dict[str, list[str]]) -> None:
    """Create an account with its own role."""
    await harness.create(ACCOUNTS, name)
    await harness.create(_ROLES, name, rules=list(rules))
    await harness.create(
        _BINDINGS,
        name,
        roleRef={"apiGroup": _GROUP, "kind": "Role", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    )


def rule(resource: str, *verbs: str, **more: list[str]) -> dict[str, list[str]]:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": [resource], **more}
