"""API requests of the node about pods: status, references, tokens, removal.

Requests are retried for as long as the node runs: the state of a pod stays true.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs

from dlctl.api.meta import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS, ObjectKey, Resource
from dlctl.backoff import Backoff
from dlctl.kube.client import Client
from dlctl.kube.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    ThrottledError,
    UnreachableError,
)
from dlctl.local.node.api_types import ConfigMap, NodePod, Secret, ServiceAccount
from dlctl.local.node.containers.references import (
    ConfigSources,
    MissingReferenceError,
    references,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
_BACKOFF: Final = Backoff(base_s=0.1, cap_s=5.0)


@attrs.frozen
class PodApi:
    """Reports and reads the state of pods."""

    client: Client

    async def write_status(self, pod: NodePod, status: dict[str, Any]) -> bool:
        """Write the status; return False if this pod is gone, even if a successor has its name."""
        # The UID is a precondition: the status of one pod must not land on its successor.
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        try:
            await _retry(lambda: self.client.patch(PODS, pod.key, body, subresource="status"))
        except (NotFoundError, ConflictError):
            return False
        except ApiError as failure:
            _log_rejection(pod, "status of a pod not written", failure)
        return True

    async def remove(self, pod: NodePod) -> None:
        """Delete the object without a grace period: none of its processes are left."""
        uid = pod.metadata.uid
        try:
            await _retry(lambda: self.client.delete(PODS, pod.key, uid=uid, grace_period_s=0))
        except ConflictError:
            return
        except ApiError as failure:
            _log_rejection(pod, "pod not deleted", failure)

    async def sources(self, pod: NodePod) -> ConfigSources:
        """Return the existing ConfigMaps and Secrets that the pod refers to."""
        namespace = pod.metadata.namespace or ""
        config_maps, secrets = references(pod)
        found: dict[str, dict[str, bytes]] = {}
        hidden: dict[str, dict[str, bytes]] = {}
        for name in config_maps:
            if held := await self._find(CONFIG_MAPS, ObjectKey(namespace, name), ConfigMap):
                text = {key: value.encode() for key, value in (held.data or {}).items()}
                found[name] = {**text, **(held.binary_data or {})}
        for name in secrets:
            if secret := await self._find(SECRETS, ObjectKey(namespace, name), Secret):
                hidden[name] = dict(secret.data or {})
        return ConfigSources(config_maps=found, secrets=hidden)

    async def bind_claims(self, pod: NodePod) -> None:
        """Mark the claims of the pod as bound: the node provides each as a directory."""
        sources = [volume.persistent_volume_claim for volume in pod.spec.volumes or ()]
        for name in {source.claim_name for source in sources if source is not None}:
            key = ObjectKey(pod.metadata.namespace or "", name)
            claim = await self._find(_CLAIMS, key, dict[str, Any])
            if claim is not None and (claim.get("status") or {}).get("phase") != "Bound":
                await self._bind(key, claim)

    async def _bind(self, key: ObjectKey, claim: dict[str, Any]) -> None:
        uid, spec = claim["metadata"]["uid"], claim["spec"]
        bound = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes"),
            "capacity": (spec.get("resources") or {}).get("requests"),
        }
        volume = {"metadata": {"uid": uid}, "spec": {"volumeName": f"pvc-{uid}"}}
        state = {"metadata": {"uid": uid}, "status": bound}
        # One that is deleted meanwhile need not be bound.
        with suppress(NotFoundError, ConflictError):
            await _retry(lambda: self.client.patch(_CLAIMS, key, volume))
            await _retry(lambda: self.client.patch(_CLAIMS, key, state, subresource="status"))

    async def token(self, pod: NodePod) -> str:
        """Return a token of the service account, valid as long as the pod; empty if it has none.

        :raises MissingReferenceError: if the service account does not exist.
        """
        name = pod.spec.service_account_name or "default"
        key = ObjectKey(pod.metadata.namespace or "", name)
        account = await self._find(SERVICE_ACCOUNTS, key, ServiceAccount)
        if account is None:
            raise MissingReferenceError(f'serviceaccount "{key.namespace}/{name}" not found')
        wanted = pod.spec.automount_service_account_token
        if (account.automount_service_account_token if wanted is None else wanted) is False:
            return ""
        # Creating a subresource takes a path like any other.
        tokens = Resource("", "v1", f"serviceaccounts/{name}/token", "TokenRequest")
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod.key.name, "uid": pod.metadata.uid}
        body = {"spec": {"boundObjectRef": bound}}
        issued = await _retry(
            lambda: self.client.create(tokens, key.namespace, body, dict[str, Any])
        )
        return str(issued["status"]["token"])

    async def _find(self, resource: Resource, key: ObjectKey, as_: type[T]) -> T | None:
        try:
            return await _retry(lambda: self.client.get(resource, key, as_))
        except NotFoundError:
            return None


def _log_rejection(pod: NodePod, message: str, failure: ApiError) -> None:
    logger.warning(message, extra={"key": str(pod.key), "error": str(failure)})


async def _retry(ask: Callable[[], Awaitable[T]]) -> T:
    """Retry until the outcome cannot change by retrying."""
    failures = 0
    while True:
        try:
            return await ask()
        except (UnreachableError, ApiError) as failure:
            if not is_transient(failure):
                raise
            logger.debug("request of the node failed", extra={"error": str(failure)})
        failures += 1
        await asyncio.sleep(_BACKOFF.delay_s(failures))


def is_transient(failure: UnreachableError | ApiError) -> bool:
    """Return whether the same request may succeed later, such as on a full disk."""
    if isinstance(failure, UnreachableError | ThrottledError):
        return True
    return failure.code >= 500
