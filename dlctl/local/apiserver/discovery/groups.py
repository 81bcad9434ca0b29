"""Discovery: API groups, versions and resources, in both formats.

Clients that know aggregated discovery need two requests; others one per group.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.discovery.subresources import subresources
from dlctl.local.apiserver.resources import ResourceRegistry, ServedResource

_AGGREGATED: Final = "apidiscovery.k8s.io"
AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def wants_aggregated(accept: str) -> bool:
    """Return whether the client prefers aggregated discovery."""
    for clause in accept.split(","):
        if _AGGREGATED in clause:
            return "v=v2" in [part.strip() for part in clause.split(";")]
        if clause.strip().startswith("application/json"):
            return False
    return False


def aggregated(registry: ResourceRegistry, *, legacy: bool) -> JSON:
    """Return all of ``/api`` (legacy) or of ``/apis`` in one document."""
    groups = [
        {
            "metadata": {"name": group, "creationTimestamp": None}
            if group
            else {"creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(served) for served in resources],
                    "freshness": "Current",
                }
                for version, resources in versions
            ],
        }
        for group, versions in _groups(registry)
        if (group == "") is legacy
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    }


def legacy_versions() -> JSON:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    }


def group_list(registry: ResourceRegistry) -> JSON:
    groups = [_group(group, versions) for group, versions in _groups(registry) if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: ResourceRegistry, name: str) -> JSON | None:
    """Return the versions of one group; None if it does not exist."""
    for found, versions in _groups(registry):
        if found == name and name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(found, versions)}
    return None


def resource_list(registry: ResourceRegistry, group: str, version: str) -> JSON | None:
    """Return the resources of one version of a group; None if it does not exist."""
    found = [
        served
        for served in registry
        if (served.resource.group, served.resource.version) == (group, version)
    ]
    if not found:
        return None
    resources = sorted(found, key=lambda served: served.resource.plural)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [each for served in resources for each in _resources(served)],
    }


def verbs(served: ServedResource) -> Sequence[str]:
    return ("create",) if served.create_only else _VERBS


def _groups(registry: ResourceRegistry) -> list[tuple[str, list[tuple[str, list[Any]]]]]:
    """Return the served resources by group and version, the preferred version first."""
    ordered = sorted(registry, key=_order)
    return [
        (
            group,
            [
                (version, list(resources))
                for version, resources in groupby(in_group, lambda each: each.resource.version)
            ],
        )
        for group, in_group in groupby(ordered, lambda each: each.resource.group)
    ]


def _order(served: ServedResource) -> tuple[Any, ...]:
    resource = served.resource
    return resource.group, *version_order(resource.version), resource.plural


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts stable versions first, then beta, then alpha, the newest first."""
    main, _, rest = version.removeprefix("v").partition("beta")
    stage = 1 if rest or "beta" in version else 0
    if "alpha" in version:
        main, _, rest = version.removeprefix("v").partition("alpha")
        stage = 2
    if not main.isdecimal():
        return 3, 0, 0, version
    return stage, -int(main), -int(rest or 0), version


def _group(name: str, versions: Iterable[tuple[str, Any]]) -> JSON:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version, _ in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(served: ServedResource) -> list[JSON]:
    resource = served.resource
    main = {
        "name": resource.plural,
        "singularName": served.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(verbs(served)),
        **_short_names_and_categories(served),
    }
    below = [
        {
            "name": f"{resource.plural}/{each.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": each.kind["kind"],
            # Left out where they are those of the list.
            **({} if each.kind["group"] == resource.group else each.kind),
            "verbs": list(each.verbs),
        }
        for each in subresources(served)
    ]
    return [main, *below]


def _short_names_and_categories(served: ServedResource) -> JSON:
    """Return what else ``kubectl`` takes for the resource, left out if there is nothing."""
    lists = {"shortNames": served.short_names, "categories": served.categories}
    return {name: list(values) for name, values in lists.items() if values}


def _aggregated_resource(served: ServedResource) -> JSON:
    resource = served.resource
    result: JSON = {
        "resource": resource.plural,
        "responseKind": served.group_version_kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": list(verbs(served)),
        **_short_names_and_categories(served),
    }
    below = [
        {"subresource": each.name, "responseKind": each.kind, "verbs": list(each.verbs)}
        for each in subresources(served)
    ]
    return result | ({"subresources": below} if below else {})
