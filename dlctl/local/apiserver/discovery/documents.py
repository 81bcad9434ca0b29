"""The paths that describe the API: version, discovery, OpenAPI. All others are resources.

Responses are created on demand: the registry changes as CRDs come and go.
"""

import platform
from collections.abc import Callable
from typing import Final

import msgspec

from dlctl.api.json_types import JSON
from dlctl.local.apiserver.discovery import groups, openapi, openapi_protobuf
from dlctl.local.apiserver.requests import BufferedResponse
from dlctl.local.apiserver.resources import ResourceRegistry

# The Kubernetes version that is emulated; kubectl compares it with its own.
_MINOR: Final = "36"
Documents = Callable[[str, str], BufferedResponse | None]


def documents(registry: ResourceRegistry) -> Documents:
    """Return a handler of path and Accept header; it returns None for other paths."""

    def find(path: str, accept: str) -> BufferedResponse | None:
        parts = path.strip("/").split("/")
        if parts in (["api"], ["apis"]) and groups.wants_aggregated(accept):
            everything = groups.aggregated(registry, legacy=parts == ["api"])
            body = msgspec.json.encode(everything)
            return BufferedResponse(body, content_type=groups.AGGREGATED_TYPE)
        if parts == ["openapi", "v2"] and openapi_protobuf.accepts_protobuf(accept):
            body = openapi_protobuf.encode(openapi.v2(registry))
            return BufferedResponse(body, content_type=openapi_protobuf.MEDIA_TYPE)
        document = _document(parts, registry)
        return None if document is None else BufferedResponse(msgspec.json.encode(document))

    return find


def _document(parts: list[str], registry: ResourceRegistry) -> JSON | None:
    match parts:
        case ["version"]:
            return _version()
        case ["openapi", *rest]:
            return _openapi(rest, registry)
        case ["api"]:
            return groups.legacy_versions()
        case ["apis"]:
            return groups.group_list(registry)
        case ["api", version]:
            return groups.resource_list(registry, "", version)
        case ["apis", group]:
            return groups.group(registry, group)
        case ["apis", group, version]:
            return groups.resource_list(registry, group, version)
        case [""]:
            return {"paths": ["/api", "/apis", "/openapi/v2", "/openapi/v3", "/version"]}
        case _:
            return None


def _openapi(rest: list[str], registry: ResourceRegistry) -> JSON | None:
    match rest:
        case ["v2"]:
            return openapi.v2(registry)
        case ["v3"]:
            return openapi.v3_index(registry)
        case ["v3", *group]:
            return openapi.v3(registry, "/".join(group))
        case _:
            return None


def _version() -> JSON:
    return {
        "major": "1",
        "minor": _MINOR,
        "gitVersion": f"v1.{_MINOR}.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": f"linux/{platform.machine()}",
    }
