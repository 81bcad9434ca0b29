"""The ClusterRoles that a cluster has from its start: cluster-admin, admin, edit and view.

They grant what they grant on a cluster, for the resources that are served here, but not to
impersonate service accounts. The last three select others by labels, as on a cluster.
"""

from typing import Final

from dlctl.api.json_types import JSON

_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "deletecollection", "patch", "update"]


def _rule(group: str, verbs: list[str], *resources: str) -> JSON:
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs}


_VIEWED: Final = (
    _rule(
        "",
        _READ,
        "configmaps",
        "endpoints",
        "events",
        "namespaces",
        "namespaces/status",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "pods",
        "pods/log",
        "pods/status",
        "serviceaccounts",
        "services",
        "services/status",
    ),
    _rule("autoscaling", _READ, "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
    _rule("batch", _READ, "jobs", "jobs/status"),
    _rule("policy", _READ, "poddisruptionbudgets", "poddisruptionbudgets/status"),
)
_EDITED: Final = (
    _rule("", _READ, "pods/attach", "pods/exec", "pods/portforward", "secrets"),
    _rule(
        "",
        _WRITE,
        "configmaps",
        "events",
        "persistentvolumeclaims",
        "pods",
        "pods/attach",
        "pods/exec",
        "pods/portforward",
        "secrets",
        "serviceaccounts",
        "services",
    ),
    _rule("", ["create"], "pods/eviction", "serviceaccounts/token"),
    _rule("autoscaling", _WRITE, "horizontalpodautoscalers"),
    _rule("batch", _WRITE, "jobs"),
    _rule("coordination.k8s.io", [*_READ, *_WRITE], "leases"),
    _rule("policy", _WRITE, "poddisruptionbudgets"),
)
_ADMINISTERED: Final = (
    _rule("rbac.authorization.k8s.io", [*_READ, *_WRITE], "rolebindings", "roles"),
)
ALL_RESOURCES: Final = _rule("*", ["*"], "*")
_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_ALL_PATHS: Final = {"nonResourceURLs": ["*"], "verbs": ["*"]}


def _default(name: str, *rules: JSON, part_of: str = "") -> JSON:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if part_of:
        labels[_label(part_of)] = "true"
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


def _aggregated(
    name: str, own: tuple[JSON, ...], rest: tuple[JSON, ...], part_of: str = ""
) -> JSON:
    """Return a role that selects the one of its own rules, and the next smaller role."""
    selector = {"matchLabels": {_label(name): "true"}}
    rule = {"clusterRoleSelectors": [selector]}
    return _default(name, *own, *rest, part_of=part_of) | {"aggregationRule": rule}


def _label(name: str) -> str:
    return f"rbac.authorization.k8s.io/aggregate-to-{name}"


def with_missing_defaults(role: JSON, default: JSON) -> JSON:
    """Return a default role with the rules that it lacks, unless its user has opted out of them.

    Servers do this at each start.
    """
    meta = role["metadata"]
    if (meta.get("annotations") or {}).get(_AUTOUPDATE) == "false":
        return role
    rules = role.get("rules") or []
    labels = {**default["metadata"]["labels"], **(meta.get("labels") or {})}
    missing = [rule for rule in default["rules"] if rule not in rules]
    return {**default, **role, "metadata": {**meta, "labels": labels}, "rules": [*rules, *missing]}


DEFAULT_CLUSTER_ROLES: Final = (
    _default("cluster-admin", ALL_RESOURCES, _ALL_PATHS),
    _default("system:aggregate-to-admin", *_ADMINISTERED, part_of="admin"),
    _default("system:aggregate-to-edit", *_EDITED, part_of="edit"),
    _default("system:aggregate-to-view", *_VIEWED, part_of="view"),
    _aggregated("admin", _ADMINISTERED, _EDITED + _VIEWED),
    _aggregated("edit", _EDITED, _VIEWED, part_of="admin"),
    _aggregated("view", _VIEWED, (), part_of="edit"),
)
