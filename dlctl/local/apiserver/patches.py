"""Patches: JSON Patch (RFC 6902) and merge patch (RFC 7386), as pure functions on JSON values.

They return a new value and leave their arguments alone. Strategic merge is in ``strategic``.
"""

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from dlctl.local.apiserver import status
from dlctl.local.apiserver.decoding import wrong_type


class _Operation(msgspec.Struct):
    op: str = ""
    path: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    value: Any = msgspec.UNSET


def merged(target: Any, patch: Any) -> Any:
    """Return the target after a merge patch: null deletes, objects merge, the rest replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def json_patched(target: Any, operations: Any) -> Any:
    """Return the target after all operations; a test that fails refuses them together."""
    if not isinstance(operations, list):
        problem = wrong_type(operations, "[]handlers.jsonPatchOp")
        raise status.bad_request(f"error decoding patch: {problem}")
    try:
        parsed = msgspec.convert(operations, list[_Operation])
    except msgspec.ValidationError as error:
        raise status.bad_request(f"error decoding patch: {error}") from None
    result = copy.deepcopy(target)
    for operation in parsed:
        result = _applied(result, operation)
    return result


def _applied(root: Any, operation: _Operation) -> Any:
    if operation.path is None:
        raise status.unprocessable()
    path = _tokens(operation.path)
    match operation.op:
        case "add":
            return _put(root, path, _value(operation), insert=True)
        case "replace":
            return _put(root, path, _value(operation), insert=False)
        case "remove":
            return _removed(root, path)
        case "test":
            if _read(root, path, default=None) != _value(operation):
                raise status.unprocessable()
            return root
        case "move" | "copy":
            source = _tokens(operation.from_ or "")
            value = copy.deepcopy(_read(root, source))
            if operation.op == "move":
                root = _removed(root, source)
            return _put(root, path, value, insert=True)
        case _:
            raise status.unprocessable()


def _value(operation: _Operation) -> Any:
    if operation.value is msgspec.UNSET:
        return None
    return copy.deepcopy(operation.value)


def _tokens(pointer: str) -> list[str]:
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise status.unprocessable()
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


_MISSING = object()


def _read(root: Any, path: list[str], default: Any = _MISSING) -> Any:
    value = root
    for token in path:
        try:
            value = value[_index(value, token)] if isinstance(value, list) else value[token]
        except (KeyError, IndexError, TypeError):
            if default is _MISSING:
                raise status.unprocessable() from None
            return default
    return value


def _index(items: list[Any], token: str) -> int:
    if not token.lstrip("-").isdecimal() or int(token) < 0:
        raise status.unprocessable()
    return int(token)


def _put(root: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent = _read(root, path[:-1])
    last = path[-1]
    if isinstance(parent, list):
        at = len(parent) if last == "-" else _index(parent, last)
        if at > len(parent) - (not insert):
            raise status.unprocessable()
        if insert:
            parent.insert(at, value)
        else:
            parent[at] = value
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise status.unprocessable()
    return root


def _removed(root: Any, path: list[str]) -> Any:
    if not path:
        raise status.unprocessable()
    parent = _read(root, path[:-1])
    _read(parent, path[-1:])
    if isinstance(parent, list):
        del parent[_index(parent, path[-1])]
    else:
        del parent[path[-1]]
    return root
