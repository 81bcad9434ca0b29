"""Create the objects of manifests, of any kind, in an order that works."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import attrs

from dlctl.api.meta import CRDS, NAMESPACES, Object, ObjectKey, Resource
from dlctl.cli.manifests.loading import Manifest, as_new, job_kind
from dlctl.cli.manifests.unserved_kinds import not_served
from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError
from dlctl.kube.client import Client
from dlctl.kube.discovery import served_resources
from dlctl.kube.errors import AlreadyExistsError, ApiError

# As kubectl does: unknown fields are errors.
_STRICT: Final = {"fieldValidation": "Strict"}


@attrs.frozen
class SubmittedJob:
    """A job that was created on the server."""

    kind: Kind
    key: ObjectKey


async def submit(
    client: Client, kinds: Sequence[Kind], manifests: Iterable[Manifest], namespace: str
) -> list[SubmittedJob]:
    """Create all objects, jobs last, after the namespaces they mention.

    :raises ConfigError: if the server does not serve a kind, or rejects an object.
    """
    jobs: list[tuple[Kind, Manifest]] = []
    for manifest in manifests:
        kind = job_kind(kinds, manifest.obj)
        if kind is not None:
            jobs.append((kind, manifest))
        else:
            await _create(client, await _resource(client, manifest), manifest, namespace)
    return [
        SubmittedJob(kind, await _create(client, kind.resource, manifest, namespace))
        for kind, manifest in jobs
    ]


async def _resource(client: Client, manifest: Manifest) -> Resource:
    api_version, kind = str(manifest.obj.get("apiVersion")), str(manifest.obj["kind"])
    group, _, version = api_version.rpartition("/")
    resources = await served_resources(client, api_version)
    for served in resources:
        if served.kind == kind:
            return Resource(group, version, served.name, kind, namespaced=served.namespaced)
    message = not_served(api_version, kind, {served.kind for served in resources})
    raise ConfigError(f"{manifest.titled(('kind',))}: {message}")


async def _create(
    client: Client, resource: Resource, manifest: Manifest, namespace: str
) -> ObjectKey:
    body = as_new(manifest.obj, namespace if resource.namespaced else None)
    home = body["metadata"]["namespace"] if resource.namespaced else ""
    try:
        if home:
            await ensure_namespace(client, home)
        created = await client.create(resource, home, body, Object, params=_STRICT)
    except ApiError as error:
        if resource == CRDS and isinstance(error, AlreadyExistsError):
            # One of our own CRDs, which users may list beside their jobs.
            return ObjectKey("", body["metadata"]["name"])
        raise ConfigError(f"{manifest.titled()} is rejected: {error}") from error
    return created.key


async def ensure_namespace(client: Client, name: str) -> None:
    """Create a namespace unless it exists."""
    with suppress(AlreadyExistsError):
        await client.create(NAMESPACES, "", {"metadata": {"name": name}})
