"""Children that were refused: when they are tried again, and what is said of them meanwhile."""

import pytest

from dlctl.api.meta import PODS
from dlctl.reconcilers.creation import Cause, Created, Refusal
from dlctl.reconcilers.refusals import BASE_S, CAP_S, Refusals


def refused(*names: str, error: str = "no", cause: Cause = Cause.FORBIDDEN) -> Created:
    return Created(refusals={n: Refusal(cause, PODS, f"{n}: {error}", error) for n in names})


def test_without_refusals_there_is_nothing_to_wait_for() -> None:
    assert Refusals().left_s(1, 0.0) is None


def test_each_try_in_vain_doubles_the_wait_up_to_a_cap() -> None:
    refusals, waits = Refusals(), []
    for _ in range(2_000):
        refusals.update(refused("a"), 1, 0.0)
        waits.append(refusals.left_s(1, 0.0))
    assert waits[:3] == [BASE_S, 2 * BASE_S, 4 * BASE_S]
    assert waits[-1] == CAP_S


def test_child_that_was_created_beside_them_begins_the_back_off_again() -> None:
    refusals = Refusals()
    for _ in range(4):
        refusals.update(refused("b"), 1, 0.0)
    refusals.update(Created({PODS: ["a"]}, refused("b").refusals), 1, 0.0)
    assert refusals.left_s(1, 0.0) == BASE_S


def test_another_spec_is_tried_at_once() -> None:
    refusals = Refusals()
    refusals.update(refused("a"), 1, 0.0)
    assert refusals.left_s(2, 0.0) == 0.0


@pytest.mark.parametrize(
    ("then", "changed"),
    [
        pytest.param(refused("a"), False, id="the same"),
        pytest.param(refused("a", error="yes"), False, id="for another reason"),
        pytest.param(refused("a", "b"), True, id="one more"),
        pytest.param(refused("b"), True, id="another"),
        pytest.param(Created(), True, id="none"),
    ],
)
def test_only_other_names_are_a_change(then: Created, *, changed: bool) -> None:
    refusals = Refusals()
    assert refusals.update(refused("a"), 1, 0.0)
    assert refusals.update(then, 1, 10.0) is changed


def test_text_that_differs_by_a_request_id_stays_as_it_was() -> None:
    refusals = Refusals()
    refusals.update(refused("a", error="denied, request 4f1c"), 1, 0.0)
    refusals.update(refused("a", error="denied, request 9b77"), 1, 10.0)
    assert refusals.blocked == {"a": "a: denied, request 4f1c"}
    refusals.update(refused("a", error="quota, request 9b77"), 1, 20.0)
    assert refusals.blocked == {"a": "a: quota, request 9b77"}


def test_text_about_another_spec_is_always_the_new_one() -> None:
    refusals = Refusals()
    refusals.update(refused("a", error="port 123456 is out of range"), 1, 0.0)
    refusals.update(refused("a", error="port 99999 is out of range"), 2, 10.0)
    assert refusals.blocked == {"a": "a: port 99999 is out of range"}


def test_what_is_more_than_a_name_or_a_quota_is_known() -> None:
    refusals = Refusals()
    both = {
        **refused("a").refusals,
        **refused("b", cause=Cause.REJECTED).refusals,
        **refused("c", cause=Cause.NAME_TAKEN).refusals,
    }
    refusals.update(Created(refusals=both), 1, 0.0)
    assert refusals.unusual == {"b"}
