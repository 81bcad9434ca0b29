"""The minimal ClusterRole of a controller of some kinds.

Computed from the kinds, so that it includes what frameworks of other packages need.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.dialects.kind import Kind

_CHILD_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")


def cluster_role(kinds: Iterable[Kind]) -> JSON:
    """Return the ClusterRole in its wire form."""
    kinds = list(kinds)
    rules = [
        # It comes first, to be found easily if the rest becomes a Role: a Role cannot grant access
        # to nodes.
        _rule("", ["nodes"], ["list", "watch"]),
        *(rule for kind in kinds for rule in _job_rules(kind)),
        *(rule for kind in kinds for scaler in kind.scalers for rule in _scaler_rules(scaler)),
        _rule("", ["pods", "services"], [*_CHILD_VERBS, "deletecollection"]),
        *_dependent_rules(kinds),
        *_delegated_rules(kinds),
        *_launcher_rules(kinds),
        # To say why Kueue does not admit a job; where Kueue is not installed, this grants nothing.
        _rule("kueue.x-k8s.io", ["workloads"], ["list", "watch"]),
        _rule("", ["events"], ["create", "patch"]),
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "dlctl"},
        "rules": rules,
    }


def _job_rules(kind: Kind) -> list[JSON]:
    group, plural = kind.resource.group, kind.resource.plural
    verbs = ["list", "watch"]
    if any(dialect.patches_spec for dialect in kind.dialects.values()):
        verbs.append("patch")
    if any(dialect.supports_ttl for dialect in kind.dialects.values()):
        verbs.append("delete")
    return [
        _rule(group, [plural], verbs),
        _rule(group, [f"{plural}/status"], ["patch"]),
        # Never called: with OwnerReferencesPermissionEnforcement, clusters require it for owner
        # references that block deletion.
        _rule(group, [f"{plural}/finalizers"], ["update"]),
    ]


def _scaler_rules(scaler: Resource) -> list[JSON]:
    return [
        # Patched to set the job as owner, for which OwnerReferencesPermissionEnforcement requires
        # the right to delete; deleted after their TTL.
        _rule(scaler.group, [scaler.plural], ["list", "watch", "patch", "delete"]),
        _rule(scaler.group, [f"{scaler.plural}/status"], ["patch"]),
    ]


def _dependent_rules(kinds: Sequence[Kind]) -> Iterator[JSON]:
    deletable = {resource for kind in kinds for resource in kind.transient_resources}
    dependents = {resource for kind in kinds for resource in kind.dependent_resources}
    retained_verbs = [verb for verb in _CHILD_VERBS if verb != "delete"]
    for resource in sorted(dependents, key=lambda resource_: (resource_.group, resource_.plural)):
        verbs = _CHILD_VERBS if resource in deletable else retained_verbs
        yield _rule(resource.group, [resource.plural], verbs)


def _delegated_rules(kinds: Sequence[Kind]) -> Iterator[JSON]:
    """Yield rules that are never used: a job's role can only grant rights of the controller."""
    granted = {("", "pods", verb) for verb in _CHILD_VERBS}
    if any(kind.scalers for kind in kinds):
        granted.add(("", "pods/exec", "create"))
    for group, plural, verb in sorted(
        {g for kind in kinds for g in kind.delegated_rules} - granted
    ):
        yield _rule(group, [plural], [verb])


def _launcher_rules(kinds: Sequence[Kind]) -> Iterator[JSON]:
    if any(kind.scalers for kind in kinds):
        # To write host files in launchers. WebSocket requests use GET.
        yield _rule("", ["pods/exec"], ["get", "create"])
    if any(kind.creates_secrets for kind in kinds):
        # None are read.
        yield _rule("", ["secrets"], ["create"])
    if any(kind.creates_launcher_jobs for kind in kinds):
        yield _rule("batch", ["jobs"], _CHILD_VERBS)
        # To resume Jobs, whose start time the server requires to be cleared before.
        yield _rule("batch", ["jobs/status"], ["patch"])


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> JSON:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
