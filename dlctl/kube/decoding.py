"""Decode responses into projections, and set malformed objects aside.

One malformed object among thousands must not hide the others. msgspec's errors end here; their
messages name the field, never its value.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs
import msgspec

from dlctl.api.meta import Object, ObjectKey, OwnerReference
from dlctl.api.nesting import truncate_to_depth
from dlctl.kube.errors import UnexpectedResponseError

T = TypeVar("T")

# A server may ignore the limit; larger responses are decoded in steps, so that the event loop runs
# every few milliseconds.
SINGLE_PASS_BYTES: Final = 4 << 20
# Of a step. Small objects take longer than their bytes.
_STEP_BYTES: Final = 256 << 10
_MIN_ITEM_BYTES: Final = 512
# Of the owner references of a malformed object: the one that is read is kept.
_MAX_OWNERS_BYTES: Final = 4096
# Objects are inside the page and its list.
_ITEMS_DEPTH: Final = 2


@attrs.frozen
class Malformed:
    """An object that does not fit its type: as much of it as could be read, and the error.

    The key is None if not even that could be read.
    """

    key: ObjectKey | None
    resource_version: str
    error: str
    uid: str = ""
    controller: OwnerReference | None = None


@attrs.frozen
class ListPage(Generic[T]):
    """Some objects, their resource version, and the token for the next page."""

    items: tuple[T, ...]
    resource_version: str = ""
    continue_: str = ""
    malformed: tuple[Malformed, ...] = ()


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _TypeMeta(msgspec.Struct):
    kind: str = ""


class _Page(msgspec.Struct, Generic[T], frozen=True):
    # Required: what is JSON, but of no API server, would be an empty list.
    items: list[T] | None
    kind: str = ""
    metadata: _ListMeta = _ListMeta()


class _Identity(msgspec.Struct, rename="camel", frozen=True):
    # Of any type: the object is malformed.
    name: Any = None
    namespace: Any = None
    uid: Any = None
    resource_version: Any = None
    owner_references: msgspec.Raw = msgspec.Raw(b"null")


class _Identified(msgspec.Struct, frozen=True):
    """An object of which nothing else is decoded: it may have a megabyte of labels."""

    metadata: _Identity | None = None


# Creating a decoder takes far longer than using it.
decoder: Callable[[Any], "msgspec.json.Decoder[Any]"] = functools.cache(msgspec.json.Decoder)


def decode(body: bytes, as_: type[T]) -> T:
    """Return the object; raise UnexpectedResponseError if it is not of this type."""
    try:
        return _decode_truncated(body, as_)
    except Exception as error:
        raise UnexpectedResponseError(f"{as_.__name__}: {error}") from error


def decode_object(body: bytes, as_: type[T]) -> T:
    """Return the response to a request for one object, or a Status; raise like :func:`decode`."""
    decoded = decode(body, as_)
    if isinstance(decoded, Object) and not decoded.metadata.name and not is_status(body):
        raise UnexpectedResponseError(f"{as_.__name__}: the response is an object without a name")
    return decoded


def is_status(body: bytes) -> bool:
    """Return whether a response is a Status, as to a binding or a deletion."""
    return decode(body, _TypeMeta).kind == "Status"


async def decode_page(
    body: bytes, as_: type[T], *, single_pass_bytes: int = SINGLE_PASS_BYTES
) -> ListPage[T]:
    """Return the page; objects that do not fit the type are set aside."""
    try:
        return await _decode_page(body, as_, single_pass_bytes)
    except RecursionError:
        # To find where each object ends, all brackets of the page have to be inspected.
        return await asyncio.to_thread(_decode_deep_page, body, as_)


async def _decode_page(body: bytes, as_: type[T], single_pass_bytes: int) -> ListPage[T]:
    if len(body) <= single_pass_bytes:
        try:
            page: _Page[T] = decoder(_Page[as_]).decode(body)  # type: ignore[valid-type]
            return _page(page, page.items or ())
        except msgspec.ValidationError:
            # One of the objects is malformed; the steps below find it.
            pass
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnexpectedResponseError(f"list of {as_.__name__}: {error}") from error
    # Joining the chunks of a large body took its time, and so does splitting it into objects.
    await asyncio.sleep(0)
    undecoded = _undecoded_page(body, as_)
    await asyncio.sleep(0)
    found: list[T | Malformed] = []
    step_bytes = 0
    for item in undecoded.items or ():
        found.append(_decode_item(item, as_))
        step_bytes += max(memoryview(item).nbytes, _MIN_ITEM_BYTES)
        if step_bytes >= _STEP_BYTES:
            await asyncio.sleep(0)
            step_bytes = 0
    return _page(undecoded, found)


def _decode_deep_page(body: bytes, as_: type[T]) -> ListPage[T]:
    """Decode a page with objects that nest too deeply, each by itself as a watch does."""
    cut = truncate_to_depth(body, _ITEMS_DEPTH, max_brackets=len(body))
    page = _undecoded_page(cut.text, as_)
    return _page(page, [_decode_item(item, as_) for item in cut.removed])


def _undecoded_page(body: bytes, as_: type[T]) -> _Page[msgspec.Raw]:
    try:
        page: _Page[msgspec.Raw] = decoder(_Page[msgspec.Raw]).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedResponseError(f"list of {as_.__name__}: {error}") from error
    return page


def _decode_item(item: bytes | msgspec.Raw, as_: type[T]) -> T | Malformed:
    try:
        return _decode_truncated(item, as_)
    except Exception as error:  # noqa: BLE001 - any error affects one object only
        return identify_malformed(item, error)


def _decode_truncated(text: bytes | msgspec.Raw, as_: type[T]) -> T:
    """Return the object, without what nests too deeply.

    :raises RecursionError: if it has too many brackets to examine.
    """
    try:
        decoded: T = decoder(as_).decode(text)
    except RecursionError:
        cut = truncate_to_depth(bytes(text))
        if not cut.is_complete:
            raise
        decoded = decoder(as_).decode(cut.text)
    return decoded


def _page(page: _Page[Any], found: Sequence[T | Malformed]) -> ListPage[T]:
    if page.kind == "Table":
        raise UnexpectedResponseError("the server sent a Table, which has no objects")
    meta = page.metadata
    return ListPage(
        tuple(one for one in found if not isinstance(one, Malformed)),
        meta.resource_version or "",
        meta.continue_ or "",
        tuple(one for one in found if isinstance(one, Malformed)),
    )


def identify_malformed(raw: bytes | msgspec.Raw, error: Exception) -> Malformed:
    """Return what identifies an object that does not fit its type; never raises."""
    meta = _identity(raw)
    if meta is None:
        return Malformed(None, "", str(error))
    name, namespace = meta.name, meta.namespace
    version, uid = meta.resource_version, meta.uid
    readable = isinstance(name, str) and isinstance(namespace, str | None)
    return Malformed(
        ObjectKey(namespace or "", str(name)) if readable else None,
        version if isinstance(version, str) else "",
        str(error),
        uid if isinstance(uid, str) else "",
        _controller(meta.owner_references),
    )


def _controller(references: msgspec.Raw) -> OwnerReference | None:
    """Return the owner that controls an object, None if it cannot be read."""
    if memoryview(references).nbytes > _MAX_OWNERS_BYTES:
        return None
    try:
        owners: list[OwnerReference] = decoder(list[OwnerReference]).decode(references)
    except msgspec.MsgspecError:
        return None
    return next((owner for owner in owners if owner.controller), None)


def _identity(raw: bytes | msgspec.Raw) -> _Identity | None:
    """Return the identity in the metadata of an object, None if it cannot be read."""
    identified: msgspec.json.Decoder[_Identified] = decoder(_Identified)
    try:
        try:
            return identified.decode(raw).metadata
        except RecursionError:
            return identified.decode(truncate_to_depth(bytes(raw)).text).metadata
    except Exception:  # noqa: BLE001 - such as text that is not JSON
        return None
