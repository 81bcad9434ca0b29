"""Differences between the endpoints of built-in resources; custom ones are all alike.

Taken from the strategies of Kubernetes 1.36. Defaults and validation belong to the strategy of a
:class:`ServedResource` instead.
"""

from typing import Final

from dlctl.api.meta import Resource

_CREATE_ON_UPDATE: Final = frozenset(
    {
        "events",
        "services",
        "endpoints",
        "leases.coordination.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
_NEED_VERSION: Final = frozenset(
    {
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
_RETURN_DELETED: Final = frozenset(
    {
        "namespaces",
        "persistentvolumeclaims",
        "pods",
        "services",
        "serviceaccounts",
    }
)
_HAVE_GENERATION: Final = frozenset(
    {
        "pods",
        "jobs.batch",
        "poddisruptionbudgets.policy",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
# CRDs may be in other groups that end in ``.k8s.io``.
_BUILT_IN: Final = frozenset(
    {
        "",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
    }
)
# A node registers with its status in one request.
_STATUS_ON_CREATE: Final = frozenset({"nodes", "namespaces"})


def is_built_in(resource: Resource) -> bool:
    return resource.group in _BUILT_IN


def allows_create_on_update(resource: Resource) -> bool:
    """Return whether a PUT to a name that does not exist creates it."""
    return resource.group_resource in _CREATE_ON_UPDATE


def allows_unconditional_update(resource: Resource) -> bool:
    """Return whether a PUT without a resource version overwrites the object."""
    return is_built_in(resource) and resource.group_resource not in _NEED_VERSION


def returns_deleted_object(resource: Resource) -> bool:
    """Return whether a DELETE responds with the object even when it is gone."""
    return resource.group_resource in _RETURN_DELETED


def has_generation(resource: Resource) -> bool:
    if not is_built_in(resource):
        return True
    return resource.group_resource in _HAVE_GENERATION


def orphans_by_default(resource: Resource) -> bool:
    """Return whether a deletion without a propagation policy leaves the dependents."""
    return resource.group_resource == "jobs.batch"


def keeps_status_on_create(resource: Resource) -> bool:
    return resource.group_resource in _STATUS_ON_CREATE
