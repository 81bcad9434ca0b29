"""Decode responses into projections, and set malformed objects aside.

One malformed object among thousands must not hide the others. msgspec's errors end here; their
messages name the field, never its value.
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs
import msgspec

from dlctl.api.meta import ObjectKey
from dlctl.api.nesting import truncate_to_depth
from dlctl.kube.errors import UnexpectedResponseError

T = TypeVar("T")

# A server may ignore the limit; larger responses are decoded in steps, so that the event loop runs
# every few milliseconds.
SINGLE_PASS_BYTES: Final = 4 << 20
_YIELD_EVERY: Final = 500


@attrs.frozen
class Malformed:
    """An object that does not fit its type: as much of it as could be read, and the error.

    The key is None if not even that could be read.
    """

    key: ObjectKey | None
    resource_version: str
    error: str
    uid: str = ""


@attrs.frozen
class ListPage(Generic[T]):
    """Some objects, their resource version, and the token for the next page."""

    items: tuple[T, ...]
    resource_version: str = ""
    continue_: str = ""
    remaining: int | None = None
    malformed: tuple[Malformed, ...] = ()


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class _Page(msgspec.Struct, Generic[T], frozen=True):
    kind: str = ""
    metadata: _ListMeta = _ListMeta()
    items: list[T] | None = None


# Creating a decoder takes far longer than using it.
decoder: Callable[[Any], "msgspec.json.Decoder[Any]"] = functools.cache(msgspec.json.Decoder)


def decode(body: bytes, as_: type[T]) -> T:
    """Return the object; raise UnexpectedResponseError if it is not of this type."""
    try:
        try:
            decoded: T = decoder(as_).decode(body)
        except RecursionError:
            flat, complete = truncate_to_depth(body)
            if not complete:
                raise
            decoded = decoder(as_).decode(flat)
    except Exception as error:
        raise UnexpectedResponseError(f"{as_.__name__}: {error}") from error
    return decoded


async def decode_page(
    body: bytes, as_: type[T], *, single_pass_bytes: int = SINGLE_PASS_BYTES
) -> ListPage[T]:
    """Return the page; objects that do not fit the type are set aside."""
    try:
        return await _decode_page(body, as_, single_pass_bytes)
    except RecursionError:
        # To find the objects that nest too deep, each bracket of the page has to be inspected.
        flat, _ = await asyncio.to_thread(truncate_to_depth, body, max_brackets=len(body))
        return await _decode_page(flat, as_, single_pass_bytes)


async def _decode_page(body: bytes, as_: type[T], single_pass_bytes: int) -> ListPage[T]:
    if len(body) <= single_pass_bytes:
        try:
            return _page(decoder(_Page[as_]).decode(body))  # type: ignore[valid-type]
        except msgspec.ValidationError:
            # One of the objects is malformed; the steps below find it.
            pass
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnexpectedResponseError(f"list of {as_.__name__}: {error}") from error
    # Joining the chunks of a large body took its time, and so does splitting it into objects.
    await asyncio.sleep(0)
    try:
        raw = decoder(_Page[msgspec.Raw]).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedResponseError(f"list of {as_.__name__}: {error}") from error
    await asyncio.sleep(0)
    items: list[T] = []
    malformed: list[Malformed] = []
    for start in range(0, len(raw.items or ()), _YIELD_EVERY):
        for item in (raw.items or ())[start : start + _YIELD_EVERY]:
            try:
                items.append(decoder(as_).decode(item))
            except Exception as error:  # noqa: BLE001 - any error affects one object only
                malformed.append(identify_malformed(item, error))
        await asyncio.sleep(0)
    return attrs.evolve(_page(raw), items=tuple(items), malformed=tuple(malformed))


def _page(page: _Page[Any]) -> ListPage[Any]:
    if page.kind == "Table":
        raise UnexpectedResponseError("the server sent a Table, which has no objects")
    meta = page.metadata
    return ListPage(
        tuple(page.items or ()),
        meta.resource_version or "",
        meta.continue_ or "",
        meta.remaining_item_count,
    )


def identify_malformed(raw: bytes | msgspec.Raw, error: Exception) -> Malformed:
    """Return what identifies an object that does not fit its type; never raises."""
    try:
        content = msgspec.json.decode(truncate_to_depth(bytes(raw))[0])
    except Exception:  # noqa: BLE001 - such as text that is not UTF-8
        content = None
    meta = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(meta, dict):
        return Malformed(None, "", str(error))
    name, namespace = meta.get("name"), meta.get("namespace")
    version, uid = meta.get("resourceVersion"), meta.get("uid")
    readable = isinstance(name, str) and isinstance(namespace, str | None)
    return Malformed(
        ObjectKey(namespace or "", str(name)) if readable else None,
        version if isinstance(version, str) else "",
        str(error),
        uid if isinstance(uid, str) else "",
    )
