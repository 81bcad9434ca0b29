"""Decoding errors in the words of the real server: those of Go's JSON decoder.

Clients show these texts to people; here they are derived from our own decoders' errors.
"""

import json
import re
from collections import Counter
from typing import Any, Final

import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import status

_SHOWN_BYTES: Final = 1024
_BASE64: Final = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII
)
_NOT_BASE64: Final = re.compile("[^A-Za-z0-9+/]")
_TYPED: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_GO_NAMES: Final = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_AFTER: Final = (
    ("trailing characters", "after top-level value"),
    ("object keys must be strings", "looking for beginning of object key string"),
    ("", "looking for beginning of value"),
)


def json_problem(error: Exception, body: bytes) -> str:
    """Return Go's error for a body that msgspec rejects."""
    if isinstance(error, RecursionError):
        return "exceeded max depth"
    at = re.search(r"\(byte (\d+)\)", str(error))
    start = int(at[1]) if at else len(body)
    if "trailing" in str(error):
        start = min(start, len(body) - 1)
    if start >= len(body):
        return "unexpected end of JSON input"
    character = body[start:].decode(errors="replace")[0]
    where = next(words for start, words in _AFTER if start in str(error))
    return f"invalid character '{character}' {where}"


def wrong_type(value: Any, go_type: str) -> str:
    """Return Go's error for a value of the wrong type."""
    name = "object" if isinstance(value, dict) else _GO_NAMES.get(type(value), "null")
    return f"json: cannot unmarshal {name} into Go value of type {go_type}"


def base64_problem(text: str) -> str:
    """Return Go's error for a text that is not base64; empty if it is."""
    # As in Go, which ignores the ends of lines.
    joined = text.replace("\n", "").replace("\r", "")
    valid = _BASE64.match(joined)
    at = valid.end() if valid else 0
    if at == len(joined):
        return ""
    wrong = None if joined[:at].endswith("=") else _NOT_BASE64.search(joined, at)
    return f"illegal base64 data at input byte {wrong.start() if wrong else at}"


def cannot_decode(problem: str, kind: str, body: bytes) -> str:
    """Return the error for a body that is not an object of a kind."""
    if body.lstrip().startswith(b"{"):
        shown = body[:_SHOWN_BYTES].decode(errors="replace")
    else:
        shown = body[:_SHOWN_BYTES].hex() or "<empty>"
    return f"the object provided is unrecognized (must be of type {kind}): {problem} ({shown})"


def cannot_handle(resource: Resource, problem: str) -> status.StatusError:
    """Return the error for an object that is not of the type of its kind."""
    kind = resource.kind
    message = f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {problem}'
    error = status.bad_request(message)
    error.problem = problem
    return error


def missing_kind(value: Any) -> str:
    """Return the error for a value without a kind."""
    return f"couldn't get version/kind; json parse error: {wrong_type(value, _TYPED)}"


class _DuplicateFieldsDict(dict[str, Any]):
    """An object that records its duplicate fields."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.duplicates: list[str] = []
        if len(pairs) > len(self):
            counts = Counter(name for name, _ in pairs)
            self.duplicates = [name for name, count in counts.items() if count > 1]


def duplicate_fields(body: bytes) -> list[str]:
    """Return the paths of the fields that occur more than once in a JSON body."""
    try:
        if _has_as_many_fields_when_read(body):
            return []
        value = json.loads(body, object_pairs_hook=_DuplicateFieldsDict)
    except ValueError:
        return []
    return _duplicates(value, "")


def _has_as_many_fields_when_read(body: bytes) -> bool:
    """Return whether no field is lost on reading, which is found out in a tenth of the time.

    False may also be due to an escape, which may hide the end of a name.
    """
    if rb"\u00" in body:
        return False
    written = msgspec.json.format(body, indent=-1)
    read = msgspec.json.encode(msgspec.json.decode(body))
    return written.count(b'":') == read.count(b'":')


def _duplicates(value: Any, path: str) -> list[str]:
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in _duplicates(item, f"{path}[{i}]")]
    if not isinstance(value, _DuplicateFieldsDict):
        return []
    start = f"{path}." if path else ""
    found = [f"{start}{name}" for name in value.duplicates]
    return found + [p for name, item in value.items() for p in _duplicates(item, start + name)]


def go_kind(api_version: str, kind: str) -> str:
    """Return a kind with its version as Go prints it; the core group is empty."""
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={kind}"


def go_value(value: Any) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(each) for each in value)}]"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
