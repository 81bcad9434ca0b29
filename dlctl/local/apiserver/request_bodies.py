"""Bodies of requests: from bytes in an accepted format to a checked object.

Accepts JSON, YAML, and protobuf for some kinds; anything else is a 415.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import attrs
import msgspec
import yaml

from dlctl import manifest_yaml
from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import resource_traits, status
from dlctl.local.apiserver.go_floats import whole_as_integer
from dlctl.local.apiserver.patches.json_patch import json_patched
from dlctl.local.apiserver.patches.merge_patch import merged
from dlctl.local.apiserver.patches.strategic_merge import apply_strategic_merge_patch
from dlctl.local.apiserver.request_info import RequestInfo
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization import decoding_errors, nesting_depth, protobuf
from dlctl.local.apiserver.serialization.decoding_errors import cannot_handle
from dlctl.local.apiserver.serialization.typed_decoding import TypedDecoder, decode_metadata
from dlctl.local.apiserver.status import FieldError

LIMIT_BYTES: Final = 3 * 1024 * 1024
# YAML is read a thousand times as slowly as JSON, on the event loop. kubectl sends JSON.
_YAML_LIMIT_BYTES: Final = 128 * 1024
_PATCH_OPERATIONS_LIMIT: Final = 10_000
_UNKNOWN: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
)
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"

_decode_json = msgspec.json.Decoder().decode
# As YAML, in which 3.0 is an integer.
_decode_configuration: Final = msgspec.json.Decoder(float_hook=whole_as_integer).decode


def as_text(body: bytes, content_type: str) -> bytes:
    """Return a JSON body with a replacement for each byte that is not UTF-8, as in Go."""
    if body.isascii() or _media_type(content_type) in (protobuf.MEDIA_TYPE, _YAML, _APPLY_PATCH):
        return body
    return body.decode(errors="replace").encode()


def parse(
    body: bytes,
    content_type: str,
    kind: str = "",
    on_repeated_key: Callable[[str], None] | None = None,
) -> Any:
    """Return the value of a body in JSON, YAML or protobuf; ``kind`` is the expected kind.

    ``on_repeated_key`` is called with a message for each repeated key in YAML.
    """
    media = _media_type(content_type) or _JSON
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body)
        except protobuf.UnsupportedKindError as error:
            raise status.unsupported_media_type(f"{_UNKNOWN}{_JSON}: {error}") from None
        except protobuf.ProtobufError as error:
            problem = str(error)
            message = decoding_errors.cannot_decode(problem, kind, body) if kind else problem
            raise status.bad_request(message) from None
    if media not in (_JSON, _YAML):
        accepted = f"{_JSON}, {_YAML}, {protobuf.MEDIA_TYPE}"
        raise status.unsupported_media_type(_UNKNOWN + accepted)
    try:
        if media == _YAML:
            return _load_yaml(body, on_repeated_key)
        nesting_depth.check(body)
        return _decode_json(body)
    except (msgspec.DecodeError, yaml.YAMLError, RecursionError) as error:
        problem = decoding_errors.json_problem(error, body) if media == _JSON else str(error)
        message = f"couldn't get version/kind; json parse error: {problem}"
        message = decoding_errors.cannot_decode(message, kind, body) if kind else message
        raise status.bad_request(message) from None


def _load_yaml(body: bytes, on_repeated_key: Callable[[str], None] | None = None) -> Any:
    if len(body) > _YAML_LIMIT_BYTES:
        raise status.too_large(_YAML_LIMIT_BYTES)
    return manifest_yaml.load(body, on_repeated_key)


def parse_typed(
    body: bytes, content_type: str, resource: Resource, *, former_version: str = ""
) -> JSON:
    """Return the body as an object of a built-in kind, without fields that it does not have.

    It may be of a ``former_version`` with the same fields.
    """
    value = parse(body, content_type, resource.kind)
    if former_version and isinstance(value, dict) and value.get("apiVersion") == former_version:
        value = {**value, "apiVersion": resource.api_version}
    obj = decode_object(value, resource, body)
    return TypedDecoder(resource).decode(decode_metadata(obj, resource))


def decode_object(value: Any, resource: Resource, body: bytes = b"") -> JSON:
    """Return the object if it is one of the resource, with a missing kind set where allowed."""
    built_in = resource_traits.is_built_in(resource)
    if value is None and built_in:
        value = {}
    if not isinstance(value, dict | None):
        problem = decoding_errors.missing_kind(value)
        raise status.bad_request(decoding_errors.cannot_decode(problem, resource.kind, body))
    if value is None or not (built_in or value.get("kind")):
        text = (body or msgspec.json.encode(value)).decode(errors="replace")
        problem = f"Object 'Kind' is missing in '{text}'"
        raise status.bad_request(decoding_errors.cannot_decode(problem, resource.kind, body))
    api_version = value.get("apiVersion") or (resource.api_version if built_in else "")
    kind = value.get("kind") or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise _kind_mismatch(api_version, kind, value, resource)
    return {**value, "apiVersion": api_version, "kind": kind}


def _kind_mismatch(
    api_version: str, kind: str, value: JSON, resource: Resource
) -> status.StatusError:
    if not resource_traits.is_built_in(resource):
        if api_version != resource.api_version:
            message = (
                f"the API version in the data ({api_version}) does not match the expected API "
                f"version ({resource.api_version})"
            )
            return status.bad_request(message)
        field_error = FieldError.invalid("kind", kind, f"must be {resource.kind}")
        meta = value.get("metadata")
        name = meta.get("name", "") if isinstance(meta, dict) else ""
        # Named after the kind that was sent.
        renamed = attrs.evolve(resource, kind=kind)
        return status.invalid(renamed, name, [field_error])
    if api_version != resource.api_version:
        problem = f'no kind "{kind}" is registered for version "{api_version}"'
        return cannot_handle(attrs.evolve(resource, version=api_version), problem)
    package = resource.group.partition(".")[0] or "core"
    problem = (
        f"converting ({resource.version}.{kind}) to ({package}.{resource.kind}): unknown conversion"
    )
    message = (
        f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}'
    )
    error = status.bad_request(message)
    error.problem = problem
    return error


def check_name(obj: JSON, target: RequestInfo) -> None:
    """Reject an object that is sent to the path of another."""
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
    """Return a function that applies the patch in the body to an object."""
    media = _media_type(content_type)
    accepted = [_JSON_PATCH, _MERGE_PATCH]
    if resource_traits.is_built_in(served.resource):
        accepted.append(_STRATEGIC_PATCH)
    if media not in accepted:
        accepted.append(_APPLY_PATCH)
        message = _UNKNOWN + ", ".join(accepted)
        # Built-in resources are behind a layer of their own that checks the media type.
        if resource_traits.is_built_in(served.resource):
            message = "415: Unsupported Media Type"
        raise status.unsupported_media_type(message)
    start = "" if media == _STRATEGIC_PATCH else "error decoding patch: "
    try:
        nesting_depth.check(body)
        value = _decode_json(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise status.bad_request(start + decoding_errors.json_problem(error, body)) from None
    if media == _JSON_PATCH:
        _check_size(value)
        return lambda obj: _object(json_patched(obj, value), served)
    if not isinstance(value, dict):
        problem = start + decoding_errors.wrong_type(value, "map[string]interface {}")
        raise status.bad_request("Invalid JSON Patch" if value is None else problem)
    if media == _MERGE_PATCH:
        return lambda obj: _object(merged(obj, value), served)
    return lambda obj: _object(apply_strategic_merge_patch(obj, value, served.merge_keys), served)


def applies(content_type: str) -> bool:
    """Return whether a patch is a configuration for server-side apply."""
    return _media_type(content_type) == _APPLY_PATCH


def is_json_patch(content_type: str) -> bool:
    return _media_type(content_type) == _JSON_PATCH


def is_yaml(content_type: str) -> bool:
    return _media_type(content_type) == _YAML


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def configuration(
    body: bytes, served: ServedResource, on_repeated_key: Callable[[str], None]
) -> JSON:
    """Return the configuration in the body of an apply patch; see ``parse`` for repeated keys."""
    resource = served.resource
    try:
        nesting_depth.check(body)
        if body.lstrip().startswith(b"{"):
            value = _decode_configuration(body)
            _find_repeated_keys(body, on_repeated_key)
        else:
            value = _load_yaml(body, on_repeated_key)
    except (msgspec.DecodeError, yaml.YAMLError, RecursionError) as error:
        problem = f"error decoding YAML: error converting YAML to JSON: {error}"
        raise status.bad_request(problem) from None
    if not isinstance(value, dict | None):
        go_type = "map[string]interface {}"
        problem = decoding_errors.wrong_type(value, go_type)
        message = f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {problem}"
        raise status.bad_request(message)
    config = value or {}
    # As in the real server, a value of another type counts as absent.
    sent = (config.get("apiVersion"), config.get("kind"))
    version, kind = (each if isinstance(each, str) else "" for each in sent)
    if (version, kind) != (resource.api_version, resource.kind):
        raise status.bad_request(f"invalid object type: {decoding_errors.go_kind(version, kind)}")
    return config


def _find_repeated_keys(body: bytes, on_repeated_key: Callable[[str], None]) -> None:
    """Read JSON as YAML, which knows the lines of repeated keys, unless it is large or has none."""
    if len(body) <= _YAML_LIMIT_BYTES and decoding_errors.duplicate_fields(body):
        # What YAML cannot read, such as thousands of brackets in each other, is valid JSON still.
        with suppress(yaml.YAMLError, RecursionError):
            _load_yaml(body, on_repeated_key)


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
        raise cannot_handle(served.resource, "json: cannot unmarshal into Go value")
    return value
