"""A user to whom the API server's priority and fairness gives few seats."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from bench.cluster.api_server import ApiServer
from dlctl.api.json_types import JSON

_NAME: Final = "bench-limited"
_FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_SHARES: Final = 2
# Requests that may wait for a seat; all others get 429.
_QUEUE: Final = 8
_SEATS: Final = re.compile(
    rf'^apiserver_flowcontrol_nominal_limit_seats{{priority_level="{_NAME}"}} (\d+)', re.MULTILINE
)


@attrs.frozen
class LimitedUser:
    """The user's kubeconfig, and how many requests are taken from it at the same time."""

    kubeconfig: Path
    config: JSON
    in_flight: int


@asynccontextmanager
async def limited_user(
    server: ApiServer, namespace: str, config: JSON, folder: Path
) -> AsyncIterator[LimitedUser]:
    """Create a service account with all rights, and a priority level for it alone."""
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await server.post(account, {"metadata": {"name": _NAME}})
    objects = _objects(namespace)
    try:
        for path, body in objects:
            await server.post(path, body)
        request = {"spec": {"expirationSeconds": 7200}}
        issued = await server.post(f"{account}/{_NAME}/token", request)
        own = json.loads(json.dumps(config))
        own["users"][0]["user"] = {"token": issued["status"]["token"]}
        kubeconfig = folder / "limited.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(own))
        yield LimitedUser(kubeconfig, own, await _seats(server) + _QUEUE)
    finally:
        for path, _ in objects:
            await server.delete(f"{path}/{_NAME}")


async def _seats(server: ApiServer) -> int:
    # The API server reads the level in the background.
    while (found := _SEATS.search(await server.text("/metrics"))) is None:
        pass
    return int(found[1])


def _objects(namespace: str) -> list[tuple[str, JSON]]:
    meta = {"metadata": {"name": _NAME}}
    account = {"name": _NAME, "namespace": namespace}
    level = {
        "nominalConcurrencyShares": _SHARES,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {
            "type": "Queue",
            "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": _QUEUE},
        },
    }
    resources = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"]}
    rule = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
        "resourceRules": [{**resources, "clusterScope": True}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    schema = {
        "priorityLevelConfiguration": {"name": _NAME},
        "matchingPrecedence": 500,
        "rules": [rule],
    }
    return [
        (
            f"{_FLOW}/prioritylevelconfigurations",
            {**meta, "spec": {"type": "Limited", "limited": level}},
        ),
        (f"{_FLOW}/flowschemas", {**meta, "spec": schema}),
        (
            f"{_RBAC}/clusterrolebindings",
            {
                **meta,
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "ServiceAccount", **account}],
            },
        ),
    ]
