"""Lists: selected objects, their revision, and pagination.

A continue token names a revision, so all pages show the same state; it expires with the history.
"""

import base64
import binascii
import posixpath
from collections.abc import Sequence
from typing import Any, Final

import attrs
import msgspec

from dlctl.local.apiserver import status
from dlctl.local.apiserver.endpoints.selectors import Selector
from dlctl.local.apiserver.request_options import ListRequestOptions, parse_version
from dlctl.local.apiserver.storage.storage import Storage, sort_key
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_TOKEN_VERSION: Final = "meta.k8s.io/v1"
# Revision of a token that continues with the current state.
_INCONSISTENT: Final = -1
_EXPIRED_TOKEN: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@attrs.frozen
class Page:
    """A list or a part of one, with the ``metadata`` of its response."""

    items: Sequence[StoredObject]
    revision: int
    continue_: str = ""
    remaining: int | None = None

    @property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.continue_:
            meta["continue"] = self.continue_
        if self.remaining is not None:
            meta["remainingItemCount"] = self.remaining
        return meta


def list_page(
    storage: Storage,
    namespace: str,
    selector: Selector,
    options: ListRequestOptions,
    *,
    stale_by: int = 0,
) -> Page:
    """Return the requested list, ``stale_by`` revisions old if it need not be fresh."""
    start = ""
    if options.continue_:
        revision, start = _continued(storage, options)
    else:
        revision = _revision(storage, options)
        if stale_by and options.resource_version:
            oldest = max(parse_version(options.resource_version), storage.compacted, 1)
            revision = max(oldest, revision - stale_by)
    found = storage.objects_at(selector.resource, namespace, revision)
    if start:
        found = [stored for stored in found if sort_key(stored.key) >= start]
    if selector.everything and not options.limit:
        return Page(found, revision)
    return _limited(found, selector, options.limit, revision)


def _limited(found: list[StoredObject], selector: Selector, limit: int, revision: int) -> Page:
    items: list[StoredObject] = []
    for index, stored in enumerate(found):
        if not selector.matches(stored):
            continue
        items.append(stored)
        if limit and len(items) == limit and index + 1 < len(found):
            token = _encoded(revision, sort_key(stored.key) + "\0")
            # As in etcd, which cannot know how many of the rest would match.
            remaining = len(found) - index - 1 if selector.everything else None
            return Page(items, revision, token, remaining)
    return Page(items, revision)


def _revision(storage: Storage, options: ListRequestOptions) -> int:
    """Return the revision of the first page."""
    wanted = parse_version(options.resource_version)
    if wanted > storage.revision:
        raise status.too_large_version(wanted, storage.revision)
    # Without a match rule, a limit makes the version exact, as it did before there were rules.
    exact = options.resource_version_match == "Exact" or (
        not options.resource_version_match and options.limit > 0
    )
    return wanted if wanted and exact else storage.revision


def _continued(storage: Storage, options: ListRequestOptions) -> tuple[int, str]:
    if options.resource_version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    token = _decoded(options.continue_)
    if token.rv == _INCONSISTENT:
        return storage.revision, token.start
    if token.rv < storage.compacted:
        error = status.expired(_EXPIRED_TOKEN)
        error.continue_ = _encoded(_INCONSISTENT, token.start)
        raise error
    return token.rv, token.start


def _encoded(revision: int, start: str) -> str:
    token = msgspec.json.encode(_Token(_TOKEN_VERSION, revision, start))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def _decoded(text: str) -> _Token:
    problem = "invalid continue token: continue key is not valid"
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise status.bad_request(f"{problem}: illegal base64 data at input byte 0") from None
    if token.v != _TOKEN_VERSION:
        version_problem = f"server does not recognize this encoded version {token.v}"
        raise status.bad_request(f"{problem}: {version_problem}")
    if token.rv == 0:
        raise status.bad_request(
            f"{problem}: incorrect encoded start resourceVersion (version {token.v})"
        )
    if not token.start:
        raise status.bad_request(f"{problem}: encoded start key empty (version {token.v})")
    start = token.start.removeprefix("/")
    if posixpath.normpath(f"/{start}") != f"/{start}":
        raise status.bad_request(f"{problem}: {token.start}")
    return token
