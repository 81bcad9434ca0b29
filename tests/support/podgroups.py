"""PodGroups for tests: definitions as small as it gets, and what a gang scheduler says of one."""

import asyncio
from contextlib import suppress
from typing import Any, Final

from dlctl.api.defaults import JobDefaults
from dlctl.api.gangs import PLUGIN_GROUPS, VOLCANO_GROUPS, pod_groups
from dlctl.api.meta import CRDS, Resource
from dlctl.dialects.kinds import Kind, kinds
from dlctl.frameworks.registry import installed
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, NotFoundError
from tests.support.world import World

JSON = dict[str, Any]
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_POLL_S: Final = 0.05
_SERVED_S: Final = 20.0


def definition(groups: Resource) -> JSON:
    names = {"plural": groups.plural, "singular": "podgroup", "kind": groups.kind}
    version = {
        "name": groups.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": _ANYTHING, "status": _ANYTHING},
            }
        },
        "subresources": {"status": {}},
    }
    metadata: JSON = {"name": groups.qualified}
    if groups == PLUGIN_GROUPS:
        # Asked for of who takes a name under k8s.io.
        approval = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"
        metadata["annotations"] = {"api-approved.kubernetes.io": approval}
    return {
        "metadata": metadata,
        "spec": {
            "group": groups.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


async def serve_pod_groups(user: Client, groups: Resource, namespace: str = "default") -> None:
    """Have PodGroups served; where tests share a server, another one may have seen to that."""
    with suppress(AlreadyExistsError):
        await user.create(CRDS, "", definition(groups))
    async with asyncio.timeout(_SERVED_S):
        while True:
            try:
                await user.list(groups, JSON, namespace=namespace)
            except NotFoundError:
                await asyncio.sleep(_POLL_S)
            else:
                return


def ganged(scheduler: str) -> list[Kind]:
    """Return the kinds in a cluster with such a scheduler."""
    return kinds(installed(), JobDefaults(gang_scheduler=scheduler))


async def install_ganged(cluster: World, scheduler: str) -> list[Kind]:
    """Have served what a controller needs that goes by such a scheduler; return its kinds."""
    groups = pod_groups(scheduler)
    assert groups is not None
    await serve_pod_groups(cluster.user, groups, cluster.namespace)
    served = ganged(scheduler)
    for kind in served:
        await cluster.install(kind)
    return served


async def start_ganged(cluster: World, scheduler: str) -> None:
    """Start a controller that goes by such a scheduler."""
    cluster.start(kinds=await install_ganged(cluster, scheduler))


async def admit(cluster: World, *, phase: str = "Inqueue", name: str = "linear") -> None:
    """Say of a gang what Volcano does once there is room for it."""
    status = {"status": {"phase": phase}}
    await cluster.user.patch(VOLCANO_GROUPS, cluster.key(name), status, subresource="status")
