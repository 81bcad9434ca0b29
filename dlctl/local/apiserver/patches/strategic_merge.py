"""Strategic merge patches: lists of objects merge by a key; directives control the rest.

The resource determines which lists merge (``ServedResource.merge_keys``). Pure functions.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from dlctl.local.apiserver import status
from dlctl.local.apiserver.hashable_json import hashable
from dlctl.local.apiserver.serialization.decoding_errors import go_value

MergeKeys = Mapping[str, str]
_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
# In place of an item that a patch deletes.
_DELETED: Final = object()
# Lists of plain values that are sets, in all kinds.
_SET_FIELDS: Final = ("metadata.finalizers",)


def apply_strategic_merge_patch(target: Any, patch: Mapping[str, Any], keys: MergeKeys) -> Any:
    """Return the target after the patch; an unknown directive is a bad request."""
    return _merged(target, patch, keys, "")


def _merged(target: Any, patch: Mapping[str, Any], keys: MergeKeys, path: str) -> Any:
    directive = patch.get(_PATCH)
    body = {key: value for key, value in patch.items() if key not in (_PATCH, _RETAIN)}
    if directive == "delete":
        return {}
    if directive == "replace":
        return _plain(body)
    if directive not in (None, "merge"):
        message = f"unknown patch type: {directive} in map: {go_value(dict(patch))}"
        raise status.StatusError(500, "", message)
    result = dict(target) if isinstance(target, Mapping) else {}
    if _RETAIN in patch:
        result = {key: value for key, value in result.items() if key in patch[_RETAIN]}
    for key, value in body.items():
        if key.startswith(_DELETE_PRIMITIVES):
            field = key.removeprefix(_DELETE_PRIMITIVES)
            gone = {hashable(each) for each in value}
            kept = [each for each in result.get(field) or [] if hashable(each) not in gone]
            result[field] = kept
        elif value is None:
            result.pop(key, None)
        elif not key.startswith(_ORDER):
            result[key] = _merged_value(result.get(key), value, keys, _join(path, key))
    return _reordered(result, body, keys, path)


def _reordered(
    result: dict[str, Any], patch: Mapping[str, Any], keys: MergeKeys, path: str
) -> dict[str, Any]:
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and isinstance(result.get(field), list):
            result[field] = _ordered(result[field], order, _key_of(keys, _join(path, field)))
    return result


def _merged_value(old: Any, value: Any, keys: MergeKeys, path: str) -> Any:
    if isinstance(value, Mapping):
        return _merged(old, value, keys, path)
    if not isinstance(value, list):
        return value
    key = _key_of(keys, path)
    items = old if isinstance(old, list) else []
    if key:
        return _merged_list(items, value, keys, path)
    if path in _SET_FIELDS or keys.get(path) == "":
        # New items come first.
        known = {hashable(each) for each in items}
        return [*(each for each in value if hashable(each) not in known), *items]
    return [_plain(each) for each in value]


def _merged_list(old: Sequence[Any], patch: Sequence[Any], keys: MergeKeys, path: str) -> list[Any]:
    key = _key_of(keys, path)
    replace = any(isinstance(item, Mapping) and item.get(_PATCH) == "replace" for item in patch)
    if replace:
        items = [item for item in patch if not (isinstance(item, Mapping) and _PATCH in item)]
        return [_plain(item) for item in items]
    result = list(old)
    positions: dict[Hashable, list[int]] = {}
    for at, item in enumerate(result):
        positions.setdefault(hashable(item.get(key)), []).append(at)
    for item in patch:
        if not isinstance(item, Mapping) or key not in item:
            message = f"map: {go_value(item)} does not contain declared merge key: {key}"
            raise status.StatusError(500, "", message)
        found = positions.setdefault(hashable(item[key]), [])
        if item.get(_PATCH) == "delete":
            for at in found:
                result[at] = _DELETED
            found.clear()
        elif not found:
            found.append(len(result))
            result.append(_merged({}, item, keys, path))
        else:
            result[found[0]] = _merged(result[found[0]], item, keys, path)
    return [item for item in result if item is not _DELETED]


def _ordered(items: list[Any], order: Sequence[Any], key: str) -> list[Any]:
    """Return the items that the patch names in its order; the others keep their position."""
    if key:
        order = [each.get(key) for each in order if isinstance(each, Mapping)]
    named = {hashable(name): i for i, name in enumerate(order)}
    ranks = [named.get(hashable(item.get(key) if key else item)) for item in items]
    known = iter(
        item
        for _, item in sorted(
            ((rank, item) for rank, item in zip(ranks, items, strict=True) if rank is not None),
            key=lambda pair: pair[0],
        )
    )
    return [item if rank is None else next(known) for rank, item in zip(ranks, items, strict=True)]


def _plain(value: Any) -> Any:
    """Return a value as it is stored: without directives and nulls."""
    if isinstance(value, Mapping):
        return {
            key: _plain(each)
            for key, each in value.items()
            if each is not None and not key.startswith("$")
        }
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _key_of(keys: MergeKeys, path: str) -> str:
    return keys.get(path, "uid" if path == "metadata.ownerReferences" else "")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
