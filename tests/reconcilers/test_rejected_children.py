"""Children that were refused: when they are tried again, and what is said of them meanwhile."""

import pytest

from dlctl.api.meta import PODS
from dlctl.reconcilers.children.creation import CreateResult, Rejection, RejectionCause
from dlctl.reconcilers.rejected_children import BACKOFF, RejectedChildren


def rejection(
    *names: str, error: str = "no", cause: RejectionCause = RejectionCause.FORBIDDEN
) -> CreateResult:
    return CreateResult(
        rejections={n: Rejection(cause, PODS, f"{n}: {error}", error) for n in names}
    )


def test_without_refusals_there_is_nothing_to_wait_for() -> None:
    assert RejectedChildren().left_s(1, 0.0) is None


def test_each_try_in_vain_doubles_the_wait_up_to_a_cap() -> None:
    refusals, waits = RejectedChildren(), []
    for _ in range(2_000):
        refusals.update(rejection("a"), 1, 0.0)
        waits.append(refusals.left_s(1, 0.0))
    assert waits[:3] == [BACKOFF.base_s, 2 * BACKOFF.base_s, 4 * BACKOFF.base_s]
    assert waits[-1] == BACKOFF.cap_s


def test_child_that_was_created_beside_them_begins_the_back_off_again() -> None:
    refusals = RejectedChildren()
    for _ in range(4):
        refusals.update(rejection("b"), 1, 0.0)
    refusals.update(CreateResult({PODS: ["a"]}, rejection("b").rejections), 1, 0.0)
    assert refusals.left_s(1, 0.0) == BACKOFF.base_s


def test_another_spec_is_tried_at_once() -> None:
    refusals = RejectedChildren()
    refusals.update(rejection("a"), 1, 0.0)
    assert refusals.left_s(2, 0.0) == 0.0


@pytest.mark.parametrize(
    ("then", "changed"),
    [
        pytest.param(rejection("a"), False, id="the same"),
        pytest.param(rejection("a", error="yes"), False, id="for another reason"),
        pytest.param(rejection("a", "b"), True, id="one more"),
        pytest.param(rejection("b"), True, id="another"),
        pytest.param(CreateResult(), True, id="none"),
    ],
)
def test_only_other_names_are_a_change(then: CreateResult, *, changed: bool) -> None:
    refusals = RejectedChildren()
    assert refusals.update(rejection("a"), 1, 0.0)
    assert refusals.update(then, 1, 10.0) is changed


def test_text_that_differs_by_a_request_id_stays_as_it_was() -> None:
    refusals = RejectedChildren()
    refusals.update(rejection("a", error="denied, request 4f1c"), 1, 0.0)
    refusals.update(rejection("a", error="denied, request 9b77"), 1, 10.0)
    assert refusals.messages == {"a": "a: denied, request 4f1c"}
    refusals.update(rejection("a", error="quota, request 9b77"), 1, 20.0)
    assert refusals.messages == {"a": "a: quota, request 9b77"}


def test_text_about_another_spec_is_always_the_new_one() -> None:
    refusals = RejectedChildren()
    refusals.update(rejection("a", error="port 123456 is out of range"), 1, 0.0)
    refusals.update(rejection("a", error="port 99999 is out of range"), 2, 10.0)
    assert refusals.messages == {"a": "a: port 99999 is out of range"}


def test_what_is_more_than_a_name_or_a_quota_is_known() -> None:
    refusals = RejectedChildren()
    both = {
        **rejection("a").rejections,
        **rejection("b", cause=RejectionCause.DENIED).rejections,
        **rejection("c", cause=RejectionCause.ALREADY_EXISTS).rejections,
    }
    refusals.update(CreateResult(rejections=both), 1, 0.0)
    assert refusals.actionable == {"b"}
