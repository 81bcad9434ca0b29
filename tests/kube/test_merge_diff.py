"""Minimal merge patches between two objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.json_types import JSON
from dlctl.kube.merge_diff import merge_diff

KEYS = st.sampled_from(["a", "b", "c"])
# In a merge patch null removes a field, so it cannot be a value.
VALUES = st.recursive(
    st.booleans() | st.text(max_size=2) | st.lists(st.text(max_size=2), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


def applied(target: Any, patch: Any) -> Any:
    """Apply a patch as RFC 7386 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


@given(old=OBJECTS, new=OBJECTS)
def test_patch_turns_the_old_object_into_the_new_one(old: JSON, new: JSON) -> None:
    assert applied(old, merge_diff(old, new)) == new


@given(both=OBJECTS)
def test_equal_objects_need_no_patch(both: JSON) -> None:
    assert merge_diff(both, both) == {}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, id="field added"),
        pytest.param({"a": 1}, {}, {"a": None}, id="field removed"),
        pytest.param({"a": 1, "b": 2}, {"a": 3, "b": 2}, {"a": 3}, id="field changed"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}, id="list replaced as a whole"),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}, id="nested field"
        ),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="number replaced by an object"),
    ],
)
def test_patch_contains_only_the_differences(old: JSON, new: JSON, patch: JSON) -> None:
    assert merge_diff(old, new) == patch
