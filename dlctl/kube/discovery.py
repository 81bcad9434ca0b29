"""Which versions of an API group, and which resources of a version, the server serves."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from dlctl.kube.client import Client
from dlctl.kube.decoding import decode
from dlctl.kube.errors import NotFoundError

T = TypeVar("T")


class APIResource(msgspec.Struct, frozen=True):
    """A resource of an API version, such as ``pods``."""

    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Version] = []


class _Resources(msgspec.Struct):
    resources: tuple[APIResource, ...] = ()


async def served_version(client: Client, group: str, versions: Sequence[str]) -> str:
    """Return the first of the versions that the server serves; empty if it serves none.

    :raises DlctlError: if the server does not say.
    """
    found = await _get(client, f"/apis/{group}", _Group)
    served = {one.version for one in found.versions}
    return next((version for version in versions if version in served), "")


async def served_resources(client: Client, api_version: str) -> tuple[APIResource, ...]:
    """Return the resources of a version such as ``v1`` or ``apps/v1``, without subresources.

    :raises DlctlError: if the server does not say.
    """
    root = "/apis" if "/" in api_version else "/api"
    found = await _get(client, f"{root}/{api_version}", _Resources)
    return tuple(resource for resource in found.resources if "/" not in resource.name)


async def _get(client: Client, path: str, as_: type[T]) -> T:
    """Return what the server says at a path; the empty value if it serves nothing there."""
    try:
        response = await client.get_raw(path)
    except NotFoundError:
        return as_()
    return decode(response, as_)
