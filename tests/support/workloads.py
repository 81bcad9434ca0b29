"""Kueue's Workloads for tests: a minimal CRD, and the objects that Kueue writes for jobs."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, ObjectKey, Resource
from dlctl.api.objects.workloads import WORKLOADS
from dlctl.kube.client import Client
from dlctl.kube.errors import AlreadyExistsError, NotFoundError
from tests.support.harness import ClusterHarness

_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_POLL_S: Final = 0.05
_SERVED_S: Final = 20.0


def _version(name: str) -> JSON:
    properties = {"spec": _ANYTHING, "status": _ANYTHING}
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }


async def serve_workloads(
    user: Client, namespace: str = "default", resource: Resource = WORKLOADS
) -> None:
    """Install the CRD of Workloads in one version, unless another test on the server has."""
    approval = "https://github.com/kubernetes-sigs/kueue/pull/1"
    metadata = {
        "name": WORKLOADS.group_resource,
        "annotations": {"api-approved.kubernetes.io": approval},
    }
    spec = {
        "group": WORKLOADS.group,
        "scope": "Namespaced",
        "names": {"plural": "workloads", "singular": "workload", "kind": "Workload"},
        "versions": [_version(resource.version)],
    }
    with suppress(AlreadyExistsError):
        await user.create(CRDS, "", {"metadata": metadata, "spec": spec})
    async with asyncio.timeout(_SERVED_S):
        while True:
            try:
                await user.list(resource, JSON, namespace=namespace)
                # Real servers tell which groups they serve a little later.
                group = await user.get_raw(f"/apis/{WORKLOADS.group}")
            except NotFoundError:
                group = b""
            if f"{WORKLOADS.group}/{resource.version}".encode() in group:
                return
            await asyncio.sleep(_POLL_S)


async def create_workload(
    cluster: ClusterHarness,
    owner: JSON,
    conditions: Sequence[JSON],
    *,
    resource: Resource = WORKLOADS,
    suffix: str = "1a2b3",
    **spec: Any,
) -> ObjectKey:
    """Create the Workload of a job or pod as Kueue does, with the conditions in its status."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    name = f"{owner['kind'].lower()}-{owner['metadata']['name']}-{suffix}"
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {"queueName": "team-a", **spec},
    }
    await cluster.user.create(resource, cluster.namespace, body)
    await write_workload(cluster, cluster.key(name), {"conditions": list(conditions)}, resource)
    return cluster.key(name)


async def write_workload(
    cluster: ClusterHarness,
    key: ObjectKey,
    status: Mapping[str, Any],
    resource: Resource = WORKLOADS,
) -> None:
    await cluster.user.patch(resource, key, {"status": dict(status)}, subresource="status")
