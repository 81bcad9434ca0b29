"""The source of a reflector: some objects of one resource, listed in pages.

The reflector decides which version to request.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import attrs

from dlctl.api.interning import Interner
from dlctl.api.meta import Object, Resource
from dlctl.kube.client import Client
from dlctl.kube.decoding import Malformed
from dlctl.kube.errors import ExpiredError
from dlctl.kube.queries import PAGE_SIZE, Selection

T = TypeVar("T", bound=Object)

# No object has this name.
_NO_OBJECT: Final = "metadata.name=-"


@attrs.frozen
class Listing(Generic[T]):
    """A complete list at one resource version."""

    items: Sequence[T]
    malformed: Sequence[Malformed]
    resource_version: str
    pages: int = 1


@attrs.frozen
class Source(Generic[T]):
    """The objects of one resource that match a selection, decoded as one type.

    Each is reduced to what stores keep of it as it arrives: a list of the whole ones may not fit
    into memory.
    """

    client: Client
    resource: Resource
    as_: type[T]
    selection: Selection = attrs.field(factory=Selection)
    interner: Interner = attrs.field(factory=Interner)

    async def list(self, version: str, *, paginated: bool) -> Listing[T]:
        """Return all objects at a version: "0" is any, "" the newest, others mean not older.

        A server that answers from its cache ignores pagination, and a paginated request with a
        version may force it to read from storage. If the pages expire midway, one full list
        replaces them.

        :raises ExpiredError: if that has expired, too: large objects are listed in pages anyway.
        """
        if not paginated:
            return await self._follow_pages(version, limit=None)
        try:
            return await self._follow_pages(version, limit=PAGE_SIZE)
        except _ContinueExpiredError:
            return await self._follow_pages(version, limit=None)

    async def check_reached(self, version: str) -> None:
        """Ask whether the server has data of a version or newer, by a list of nothing.

        :raises TooLargeVersionError: if it does not.
        """
        await self.client.list(
            self.resource,
            Object,
            namespace=self.selection.get("namespace", ""),
            field_selector=_NO_OBJECT,
            resource_version=version,
        )

    async def _follow_pages(self, version: str, *, limit: int | None) -> Listing[T]:
        pages = self.client.pages(
            self.resource, self.as_, **self.selection, limit=limit, resource_version=version
        )
        items: list[T] = []
        malformed: list[Malformed] = []
        count = 0
        try:
            async for page in pages:
                items += [one.for_store(self.interner) for one in page.items]
                malformed += page.malformed
                version = version if count else page.resource_version
                count += 1
                # No list may block the event loop, however fast the server is.
                await asyncio.sleep(0)
        except ExpiredError as error:
            if not count:
                raise
            raise _ContinueExpiredError(str(error), code=error.code, reason=error.reason) from error
        return Listing(items, malformed, version, count)


class _ContinueExpiredError(ExpiredError):
    """The resource version of the first pages has expired."""
