"""PodGroups for tests: minimal CRDs, and the status that a gang scheduler writes."""

import asyncio
from contextlib import suppress
from typing import Final

from dlctl.api.defaults import JobDefaults
from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, Resource
from dlctl.api.objects.pod_groups import (
    COSCHEDULING_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    pod_group_resource,
)
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import served_kinds
from dlctl.frameworks.registry import load_frameworks
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from tests.support.harness import ClusterHarness

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
    metadata: JSON = {"name": groups.group_resource}
    if groups == COSCHEDULING_POD_GROUPS:
        # Required for names under k8s.io.
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
    """Install the CRD of PodGroups, unless another test that shares the server has."""
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


def kinds_with_gangs(scheduler: str) -> list[Kind]:
    """Return the kinds in a cluster with this gang scheduler."""
    return served_kinds(load_frameworks().frameworks, JobDefaults(gang_scheduler_name=scheduler))


async def install_with_gangs(cluster: ClusterHarness, scheduler: str) -> list[Kind]:
    """Install the CRDs for a controller with this gang scheduler; return its kinds."""
    groups = pod_group_resource(scheduler)
    assert groups is not None
    await serve_pod_groups(cluster.user, groups, cluster.namespace)
    served = kinds_with_gangs(scheduler)
    for kind in served:
        await cluster.install(kind)
    return served


async def start_with_gangs(cluster: ClusterHarness, scheduler: str) -> None:
    """Start a controller with this gang scheduler."""
    cluster.start(kinds=await install_with_gangs(cluster, scheduler))


async def admit(cluster: ClusterHarness, *, phase: str = "Inqueue", name: str = "linear") -> None:
    """Set a PodGroup's phase, as Volcano does once there is room for the gang."""
    status = {"status": {"phase": phase}}
    await cluster.user.patch(VOLCANO_POD_GROUPS, cluster.key(name), status, subresource="status")


async def admit_gangs(cluster: ClusterHarness, groups: Resource, every_s: float = 0.5) -> None:
    """Admit each new PodGroup after a while, as Volcano does where there is room."""
    status = {"status": {"phase": "Inqueue"}}
    while True:
        await asyncio.sleep(every_s)
        for group in cluster.objects(groups):
            if "status" in group:
                continue
            with suppress(ConflictError, NotFoundError):
                key = cluster.key(group["metadata"]["name"])
                await cluster.user.patch(groups, key, status, subresource="status")
