"""Options of lists, watches and deletes, and their form in the URL or body.

Options are keyword arguments; None and empty values are not sent.
"""

import enum
from collections.abc import Mapping
from typing import Any, Final, TypedDict

from dlctl.api.meta import UID

# Objects in a page, unless they are large.
PAGE_SIZE: Final = 500
_SHRINK_FACTOR: Final = 8
# Whatever version the server has at hand.
_ANY_VERSION: Final = "0"


class PatchKind(enum.StrEnum):
    """The format of a patch, by its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"


class Selection(TypedDict, total=False):
    """Which objects of a resource; an empty namespace selects all namespaces."""

    namespace: str
    label_selector: str
    field_selector: str


class ListOptions(Selection, total=False):
    """Selection, page size and freshness: version 0 is any, empty the newest, else not older."""

    limit: int | None
    continue_: str | None
    resource_version: str | None
    resource_version_match: str | None


class WatchOptions(Selection, total=False):
    """Selection, start version, and how long the server keeps the stream open."""

    resource_version: str | None
    resource_version_match: str | None
    timeout_s: int | None
    bookmarks: bool
    send_initial_events: bool | None


class DeleteOptions(TypedDict, total=False):
    """Preconditions on UID and version, grace period, and handling of dependents."""

    uid: UID | None
    resource_version: str | None
    grace_period_s: int | None
    propagation: str | None


_PARAMETER_NAMES: Final[Mapping[str, str]] = {
    "label_selector": "labelSelector",
    "field_selector": "fieldSelector",
    "limit": "limit",
    "continue_": "continue",
    "resource_version": "resourceVersion",
    "resource_version_match": "resourceVersionMatch",
    "timeout_s": "timeoutSeconds",
    "bookmarks": "allowWatchBookmarks",
    "send_initial_events": "sendInitialEvents",
}


def with_smaller_pages(options: ListOptions) -> ListOptions:
    """Return the options of a list of which a page was too large to be kept in memory."""
    limit = options.get("limit")
    if options.get("resource_version") == _ANY_VERSION:
        # At that version, a server ignores the limit.
        return {**options, "limit": limit or PAGE_SIZE, "resource_version": None}
    return {**options, "limit": max(1, limit // _SHRINK_FACTOR) if limit else PAGE_SIZE}


def query(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the query of the URL; the namespace is part of the path, not of the query."""
    return {
        _PARAMETER_NAMES[name]: _encoded(value)
        for name, value in options.items()
        if name in _PARAMETER_NAMES and value is not None and value != ""
    }


def _encoded(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def delete_body(options: DeleteOptions) -> dict[str, object]:
    """Return the DeleteOptions object."""
    body: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    uid, version = options.get("uid"), options.get("resource_version")
    if uid or version:
        wanted = {"uid": uid, "resourceVersion": version}
        body["preconditions"] = {name: value for name, value in wanted.items() if value}
    if (grace_s := options.get("grace_period_s")) is not None:
        body["gracePeriodSeconds"] = grace_s
    if propagation := options.get("propagation"):
        body["propagationPolicy"] = propagation
    return body
