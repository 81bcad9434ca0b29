"""The fields in which two versions of an object differ."""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from dlctl.local.apiserver.fieldmanager.field_sets import FieldSet, node
from dlctl.local.apiserver.fieldmanager.list_items import by_element
from dlctl.local.apiserver.fieldmanager.merge_schemas import LEAF, MergeSchema

ABSENT: Final = object()


@attrs.frozen
class Comparison:
    """The fields that are new or different in the second version, and those that it lacks."""

    changed: FieldSet
    removed: FieldSet

    @property
    def is_same(self) -> bool:
        return not self.changed and not self.removed


_Nodes = tuple[FieldSet | None, FieldSet | None]


def compare(old: Any, new: Any, schema: MergeSchema) -> Comparison:
    changed, removed = _compared_children(_fields(old, new, schema))
    return Comparison(changed, removed)


def _compared(old: Any, new: Any, schema: MergeSchema | None) -> _Nodes:
    if old == new:
        return None, None
    shown = new if new is not ABSENT and new is not None else old
    known = (schema or LEAF).of(shown)
    present = [value for value in (old, new) if value is not ABSENT and value is not None]
    wanted = {"map": dict, "list": list}.get(known.shape)
    # Empty in both versions, or of another type than declared: there is nothing below.
    if wanted is None or not any(present) or not all(isinstance(v, wanted) for v in present):
        return ({}, None) if new is not ABSENT else (None, {})
    pairs = _fields(old, new, known) if wanted is dict else _items(old, new, known)
    changed, removed = _compared_children(pairs)
    return node(changed, member=old is ABSENT), node(removed, member=new is ABSENT)


_Pairs = Iterable[tuple[str, Any, Any, MergeSchema | None]]


def _compared_children(pairs: _Pairs) -> tuple[FieldSet, FieldSet]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    for element, old, new, schema in pairs:
        more, less = _compared(old, new, schema)
        if more is not None:
            changed[element] = more
        if less is not None:
            removed[element] = less
    return changed, removed


def _given(value: Any) -> Any:
    return {} if value is ABSENT or value is None else value


def _fields(old: Any, new: Any, schema: MergeSchema) -> _Pairs:
    before, after = _given(old), _given(new)
    for name in {**before, **after}:
        yield (
            f"f:{name}",
            before.get(name, ABSENT),
            after.get(name, ABSENT),
            schema.field(name),
        )


def _items(old: Any, new: Any, schema: MergeSchema) -> _Pairs:
    before, after = by_element(_given(old), schema), by_element(_given(new), schema)
    for element in {**before, **after}:
        yield (
            element,
            before.get(element, ABSENT),
            after.get(element, ABSENT),
            schema.element,
        )
