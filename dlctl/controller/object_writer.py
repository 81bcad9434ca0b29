"""Writes to objects; the owner waits until the stores show each of them."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, Unpack

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.api.meta import UID, Object, Resource
from dlctl.controller.expectations import Expectations
from dlctl.kube.client import Client
from dlctl.kube.errors import ForbiddenError
from dlctl.kube.queries import ListOptions

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

# Concurrent requests for one job; if the server rejects all of them, no more than these are wasted.
MAX_PARALLEL: Final = 32
# Servers delete the objects of a collection one after another.
_COLLECTION_TIMEOUT_S: Final = 5.0
_COLLECTION_TIMEOUT_PER_OBJECT_S: Final = 0.05
_MAX_COLLECTION_TIMEOUT_S: Final = 50.0
# A part of the message if a role is too narrow; an admission webhook has other messages.
_NOT_IN_ROLE: Final = "cannot deletecollection resource"


@attrs.define(eq=False)
class ObjectWriter:
    """Writes objects, and expects the result on behalf of the job that owns them."""

    client: Client
    expectations: Expectations
    # False once the server has responded that the role does not include it.
    may_delete_collections: bool = attrs.field(init=False, default=True)

    async def patch(
        self,
        owner: UID,
        resource: Resource,
        existing: Object,
        body: ReadOnlyJSON | Callable[[], ReadOnlyJSON],
        as_: type[T] = Object,  # type: ignore[assignment]
        *,
        subresource: str = "",
    ) -> T:
        """Merge ``body`` into an object as it was read, and return the updated object.

        Raises like :func:`patch_if_unchanged`.
        """
        patched = await patch_if_unchanged(
            self.client, resource, existing, body, as_, subresource=subresource
        )
        self.expectations.expect_write(owner, resource, patched.metadata.resource_version)
        return patched

    async def delete(
        self, owner: UID, resource: Resource, obj: Object, *, propagation: str | None = None
    ) -> None:
        """Delete an object; ignore one already deleted.

        :raises ConflictError: if an object with another UID has its name, which the store is about
            to show. A server may answer so by mistake, and then only a retry helps.
        """
        uid = obj.metadata.uid
        await self.client.delete(resource, obj.metadata.key, uid=uid, propagation=propagation)
        self.expectations.expect_deletion(owner, resource, uid)

    async def delete_collection(
        self,
        owner: UID,
        resource: Resource,
        objects: Sequence[Object],
        **options: Unpack[ListOptions],
    ) -> None:
        """Delete objects by one request, whose options must select no others.

        After an error, any of them may have been deleted, and nothing is expected.
        """
        timeout_s = _COLLECTION_TIMEOUT_S + _COLLECTION_TIMEOUT_PER_OBJECT_S * len(objects)
        try:
            await self.client.delete_collection(
                resource, timeout_s=min(timeout_s, _MAX_COLLECTION_TIMEOUT_S), **options
            )
        except ForbiddenError as error:
            if _NOT_IN_ROLE in str(error) and self.may_delete_collections:
                self.may_delete_collections = False
                logger.warning("deleting objects singly", extra={"error": str(error)})
            raise
        for obj in objects:
            self.expectations.expect_deletion(owner, resource, obj.metadata.uid)

    async def force_delete(self, owner: UID, resource: Resource, obj: Object) -> bool:
        """Delete an object without grace; return False if it was already gone.

        :raises ConflictError: if another object has its name.
        """
        metadata = obj.metadata
        deleted = await self.client.delete(
            resource, metadata.key, uid=metadata.uid, grace_period_s=0
        )
        if deleted is None:
            return False
        # It is gone, or finalizers keep it without grace: wait until the store shows which.
        self.expectations.expect_write(owner, resource, deleted.metadata.resource_version)
        return True


async def patch_if_unchanged(
    client: Client,
    resource: Resource,
    existing: Object,
    body: ReadOnlyJSON | Callable[[], ReadOnlyJSON],
    as_: type[T] = Object,  # type: ignore[assignment]
    *,
    subresource: str = "",
) -> T:
    """Merge ``body`` into an object as it was read, and return the updated object.

    A function is called when it is the write's turn; what it raises is raised.

    :raises ConflictError: if it has changed since, or another object has its name.
    :raises NotFoundError: if it is gone.
    """
    # The UID would be no guard: the server ignores metadata in patches of the status.
    version = {"resourceVersion": existing.metadata.resource_version}

    def render() -> ReadOnlyJSON:
        content = body() if callable(body) else body
        return {**content, "metadata": {**content.get("metadata", {}), **version}}

    return await client.patch(resource, existing.metadata.key, render, as_, subresource=subresource)
