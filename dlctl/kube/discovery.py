"""Which versions of an API group the server serves."""

from collections.abc import Sequence

import msgspec

from dlctl.kube.client import Client
from dlctl.kube.decoding import decode
from dlctl.kube.errors import NotFoundError


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Version] = []


async def served_version(client: Client, group: str, versions: Sequence[str]) -> str:
    """Return the first of the versions that the server serves; empty if it serves none.

    :raises DlctlError: if the server does not say.
    """
    try:
        response = await client.get_raw(f"/apis/{group}")
    except NotFoundError:
        return ""
    served = {one.version for one in decode(response, _Group).versions}
    return next((version for version in versions if version in served), "")
