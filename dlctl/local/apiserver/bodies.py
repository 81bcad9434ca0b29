"""The bodies of requests: from bytes in one of the accepted formats to a checked object.

JSON and YAML are read, and protobuf of some kinds; the rest is answered with a 415.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml

from dlctl.local.apiserver import protobuf, status, traits
from dlctl.local.apiserver.changes import JSON
from dlctl.local.apiserver.metadata import cannot_decode
from dlctl.local.apiserver.patches import json_patched, merged
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.strategic import strategically_merged
from dlctl.local.apiserver.targets import Target

LIMIT_BYTES: Final = 3 * 1024 * 1024
_PATCH_OPERATIONS_LIMIT: Final = 10_000
_UNKNOWN: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
)
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

_decode_json = msgspec.json.Decoder().decode


def parsed(body: bytes, content_type: str) -> Any:
    """Return the value of a body in JSON, YAML or protobuf."""
    media = content_type.partition(";")[0].strip().lower() or _JSON
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decoded(body)
        except protobuf.ProtobufError as error:
            raise status.unsupported_media_type(f"{_UNKNOWN}{_JSON}: {error}") from None
    if media not in (_JSON, _YAML):
        accepted = f"{_JSON}, {_YAML}"
        raise status.unsupported_media_type(_UNKNOWN + accepted)
    try:
        return yaml.safe_load(body) if media == _YAML else _decode_json(body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise status.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def sent_object(value: Any, served: ServedResource) -> JSON:
    """Return the object if it is one of the resource, with its kind filled in if it may be."""
    resource = served.resource
    if not isinstance(value, dict):
        message = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise status.bad_request(f"{message}: json: cannot unmarshal into Go value")
    if not traits.built_in(resource) and not value.get("kind"):
        text = msgspec.json.encode(value).decode()
        raise status.bad_request(f"Object 'Kind' is missing in '{text}'")
    api_version = value.get("apiVersion") or resource.api_version
    if api_version != resource.api_version:
        message = (
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
        raise status.bad_request(message)
    kind = value.get("kind") or resource.kind
    if kind != resource.kind:
        raise status.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"converting ({kind}) to ({resource.kind}): unknown conversion"
        )
    return {**value, "apiVersion": api_version, "kind": kind}


def check_name(obj: JSON, target: Target) -> None:
    """Refuse an object that is sent to the path of another."""
    meta = obj.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    if not name:
        raise status.bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != target.name:
        raise status.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def patch(body: bytes, content_type: str, served: ServedResource) -> Callable[[JSON], JSON]:
    """Return what the patch in the body does to an object."""
    media = content_type.partition(";")[0].strip().lower()
    accepted = [_JSON_PATCH, _MERGE_PATCH]
    if traits.built_in(served.resource):
        accepted.append(_STRATEGIC_PATCH)
    if media == "application/apply-patch+yaml":
        message = "server-side apply is not served by the embedded cluster; it takes: "
        raise status.unsupported_media_type(message + ", ".join(accepted))
    if media not in accepted:
        raise status.unsupported_media_type(_UNKNOWN + ", ".join(accepted))
    try:
        value = _decode_json(body)
    except msgspec.DecodeError as error:
        raise status.bad_request(f"error decoding patch: {error}") from None
    if media == _JSON_PATCH:
        _check_size(value)
        return lambda obj: _object(json_patched(obj, value), served)
    if not isinstance(value, dict):
        raise status.bad_request("Invalid JSON Patch")
    if media == _MERGE_PATCH:
        return lambda obj: _object(merged(obj, value), served)
    return lambda obj: _object(strategically_merged(obj, value, served.merge_keys), served)


def _check_size(operations: Any) -> None:
    if isinstance(operations, list) and len(operations) > _PATCH_OPERATIONS_LIMIT:
        raise status.StatusError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_PATCH_OPERATIONS_LIMIT}, got {len(operations)}",
        )


def _object(value: Any, served: ServedResource) -> JSON:
    if not isinstance(value, dict):
        raise cannot_decode(served.resource, "json: cannot unmarshal into Go value")
    return value
