"""Unknown and duplicate fields of what is written: an error if asked for, otherwise warnings."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import Resource
from dlctl.local.apiserver import request_bodies, status
from dlctl.local.apiserver.request_options import WriteRequestOptions
from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization.decoding_errors import cannot_handle, duplicate_fields
from dlctl.local.apiserver.serialization.typed_decoding import TypedDecoder
from dlctl.local.apiserver.status import FieldError, StatusError

_SHORT_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"
}  # fmt: skip
_ASCII_END: Final = 0x80
_BMP_END: Final = 0xFFFF


def check_sent(
    served: ServedResource, request: ApiRequest, obj: JSON, options: WriteRequestOptions
) -> None:
    """Check the object of a create or an update."""
    if problem := _check(served, request, obj, options):
        raise cannot_handle(served.resource, problem)


def check_patched(
    served: ServedResource, request: ApiRequest, obj: JSON, options: WriteRequestOptions
) -> None:
    """Check the result of a patch."""
    if problem := _check(served, request, obj, options):
        raise undecodable_patch_result(obj, problem)


def check_applied(request: ApiRequest, options: WriteRequestOptions) -> None:
    """Check the configuration of an apply, which has been rejected if it has unknown fields."""
    if options.field_validation == "Ignore":
        return
    if request.repeated_keys and options.field_validation == "Strict":
        start = "error strict decoding YAML: error converting YAML to JSON: "
        raise status.bad_request(start + _yaml_errors(request.repeated_keys))
    request.warnings[:] = request.repeated_keys


def undecodable_patch_result(patched: JSON, problem: str) -> StatusError:
    """Return the error for an object that a patch made invalid."""
    error = FieldError.invalid("patch", msgspec.json.encode(patched).decode(), problem)
    # The real server names no kind here.
    return status.invalid(Resource("", "", "", ""), "", [error])


def _check(
    served: ServedResource, request: ApiRequest, obj: JSON, options: WriteRequestOptions
) -> str:
    """Return the error if one was asked for; otherwise, the response gets warnings."""
    if options.field_validation == "Ignore":
        return ""
    repeated, unknown = _duplicates(request), list(_unknown(served, obj))
    if options.field_validation == "Strict":
        if repeated and request_bodies.is_yaml(request.content_type):
            repeated = [_yaml_errors(repeated)]
        problems = ", ".join([*repeated, *unknown])
        return f"strict decoding error: {problems}" if problems else ""
    # A patch is computed again after a conflict.
    request.warnings[:] = [*repeated, *unknown]
    return ""


def _yaml_errors(lines: Sequence[str]) -> str:
    return "\n  ".join(["yaml: unmarshal errors:", *lines])


def _duplicates(request: ApiRequest) -> list[str]:
    if request_bodies.is_yaml(request.content_type):
        return request.repeated_keys
    start = "json patch " if request_bodies.is_json_patch(request.content_type) else ""
    return [f"{start}duplicate field {_quoted(path)}" for path in duplicate_fields(request.body)]


def _unknown(served: ServedResource, obj: JSON) -> Iterator[str]:
    decoder = TypedDecoder(served.resource)
    decoder.metadata(obj.get("metadata"))
    for path in (*decoder.unknown, *served.strategy.unknown_fields(obj)):
        yield f"unknown field {_quoted(path)}"


def _quoted(path: str) -> str:
    """Return the path as Go quotes it: a header may contain no control characters."""
    return f'"{"".join(map(_escaped, path))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    if (short := _SHORT_ESCAPES.get(character)) is not None:
        return short
    code = ord(character)
    if code < _ASCII_END:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _BMP_END else f"\\U{code:08x}"
