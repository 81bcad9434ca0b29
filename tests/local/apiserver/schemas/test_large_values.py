"""Large and hostile values take a time that is linear in their size."""

import pytest

from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchema
from dlctl.local.apiserver.fieldmanager.merging import merge
from dlctl.local.apiserver.schemas.cel_rules import Rules
from dlctl.local.apiserver.schemas.patterns import matches
from dlctl.local.apiserver.schemas.validation import validate
from tests.local.apiserver.definitions import under_spec


@pytest.mark.timeout(60)
def test_pattern_that_could_backtrack_takes_linear_time() -> None:
    assert not matches("a" * 100_000 + "!", "^(a+)+$")


def test_rule_that_loops_for_too_long_is_violated() -> None:
    loops = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"
    rule = {"rule": loops}
    schema = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    (error,) = Rules.compile(schema).errors([0] * 200)
    assert "cost limit exceeded" in error.message


@pytest.mark.timeout(60)
def test_large_list_is_compared_with_its_old_version_without_a_search_for_each_item() -> None:
    item = {"type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "integer"}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    rule = {"rule": "self.v >= oldSelf.v", "message": "only up"}
    schema = under_spec(x={"type": "array", **keyed, "items": item})
    guarded = under_spec(
        x={"type": "array", **keyed, "items": {**item, "x-kubernetes-validations": [rule]}}
    )
    count = 30_000
    old = {"spec": {"x": [{"k": i, "v": 1} for i in range(count)]}}
    new = {"spec": {"x": [{"k": i, "v": 2} for i in reversed(range(count))]}}

    assert validate(new, schema, old=old) == []
    assert [error.message for error in Rules.compile(guarded).errors(old, new)][:2] == [
        "Invalid value: only up"
    ] * 2


@pytest.mark.timeout(60)
def test_large_lists_are_applied_without_moving_the_rest_for_each_item() -> None:
    schema = MergeSchema("list")
    live = list(range(500_000))
    assert merge(live, live[1::2], schema)[:4] == [0, 1, 2, 3]
