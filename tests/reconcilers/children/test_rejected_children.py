"""Rejected children: when they are retried, and how they are reported meanwhile."""

import pytest

from dlctl.api.meta import PODS, Resource
from dlctl.errors import MAX_MESSAGE_CHARS
from dlctl.reconcilers.children.creation import CreateResult
from dlctl.reconcilers.children.rejected_children import BACKOFF, RejectedChildren
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause


def rejection(
    *names: str, error: str = "no", cause: RejectionCause = RejectionCause.FORBIDDEN
) -> CreateResult:
    return CreateResult(
        rejections={n: Rejection(cause, PODS, f"{n}: {error}", error) for n in names}
    )


def message(rejected: RejectedChildren) -> str:
    assert rejected.waiting is not None
    return rejected.waiting.message


def test_no_wait_without_rejections() -> None:
    assert RejectedChildren().left_s(1, 0.0) is None
    assert RejectedChildren().waiting is None


def test_each_rejected_attempt_doubles_the_backoff_up_to_a_cap() -> None:
    rejected, waits = RejectedChildren(), []
    for _ in range(2_000):
        rejected.update(rejection("a"), 1, 0.0, has_run=False)
        waits.append(rejected.left_s(1, 0.0))
    assert waits[:3] == [BACKOFF.base_s, 2 * BACKOFF.base_s, 4 * BACKOFF.base_s]
    assert waits[-1] == BACKOFF.cap_s


def test_created_child_resets_the_backoff_of_rejected_ones() -> None:
    rejected = RejectedChildren()
    for _ in range(4):
        rejected.update(rejection("b"), 1, 0.0, has_run=False)
    rejected.update(CreateResult({PODS: ["a"]}, rejection("b").rejections), 1, 0.0, has_run=False)
    assert rejected.left_s(1, 0.0) == BACKOFF.base_s


def test_changed_spec_is_tried_at_once() -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("a"), 1, 0.0, has_run=False)
    assert rejected.left_s(2, 0.0) == 0.0


def test_taken_names_are_tried_as_soon_as_all_their_holders_are_gone() -> None:
    held = {"a", "b"}

    def is_name_taken(_resource: Resource, name: str) -> bool:
        return name in held

    rejected = RejectedChildren()
    taken = rejection("a", "b", cause=RejectionCause.ALREADY_EXISTS)
    rejected.update(taken, 1, 0.0, has_run=False, is_name_taken=is_name_taken)
    assert rejected.left_s(1, 0.0, is_name_taken) == BACKOFF.base_s
    held.remove("a")
    assert rejected.left_s(1, 0.0, is_name_taken) == BACKOFF.base_s, "b would be rejected again"
    held.clear()
    assert rejected.left_s(1, 0.0, is_name_taken) == 0.0

    rejected.update(taken, 1, 0.0, has_run=False, is_name_taken=is_name_taken)
    assert rejected.left_s(1, 0.0, is_name_taken) == 2 * BACKOFF.base_s, "holders are not shown"


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
def test_only_changed_rejections_count_as_a_change(then: CreateResult, *, changed: bool) -> None:
    rejected = RejectedChildren()
    assert rejected.update(rejection("a"), 1, 0.0, has_run=False)
    assert rejected.update(then, 1, 10.0, has_run=False) is changed


def test_message_that_differs_only_in_a_request_id_is_kept() -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("a", error="denied, request 4f1c"), 1, 0.0, has_run=False)
    rejected.update(rejection("a", error="denied, request 9b77"), 1, 10.0, has_run=False)
    assert message(rejected).startswith("a: denied, request 4f1c;")
    rejected.update(rejection("a", error="quota, request 9b77"), 1, 20.0, has_run=False)
    assert message(rejected).startswith("a: quota, request 9b77;")


def test_message_about_a_changed_spec_is_replaced() -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("a", error="port 123456 is out of range"), 1, 0.0, has_run=False)
    rejected.update(rejection("a", error="port 99999 is out of range"), 2, 10.0, has_run=False)
    assert message(rejected).startswith("a: port 99999 is out of range;")


@pytest.mark.parametrize(
    ("cause", "error", "reason"),
    [
        (RejectionCause.ALREADY_EXISTS, "exists", "NameTaken"),
        (RejectionCause.FORBIDDEN, "exceeded quota: compute, used: pods=2", "QuotaExceeded"),
        (RejectionCause.FORBIDDEN, 'User "dlctl" cannot create resource', "Forbidden"),
        (
            RejectionCause.FORBIDDEN,
            'User "system:serviceaccount:dlctl-system:dlctl" cannot create resource "services"',
            "Forbidden",
        ),
        (
            RejectionCause.FORBIDDEN,
            'error looking up service account ns/x: serviceaccount "x" not found',
            "ServiceAccountNotFound",
        ),
        (
            RejectionCause.FORBIDDEN,
            'pod rejected: RuntimeClass "x" not found',
            "RuntimeClassNotFound",
        ),
        (
            RejectionCause.FORBIDDEN,
            "maximum cpu usage per Container is 2, but limit is 3",
            "LimitRangeDenied",
        ),
        (
            RejectionCause.FORBIDDEN,
            "memory max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
            "LimitRangeDenied",
        ),
        (RejectionCause.FORBIDDEN, 'violates PodSecurity "restricted:latest"', "PodSecurityDenied"),
        (RejectionCause.DENIED, 'admission webhook "a" denied the request', "WebhookDenied"),
        (RejectionCause.FORBIDDEN, 'admission webhook "a" denied the request', "WebhookDenied"),
        (RejectionCause.DENIED, 'failed calling webhook "a": timeout', "WebhookFailed"),
        (
            RejectionCause.DENIED,
            "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no",
            "PolicyDenied",
        ),
        (RejectionCause.DENIED, "policy 'a' with binding 'b' denied request: no", "PolicyDenied"),
        (RejectionCause.DENIED, "the body cannot be decoded", "Rejected"),
        (RejectionCause.NOT_SERVED, "not found", "NotServed"),
        (RejectionCause.INVALID, "spec.containers: Required value", "InvalidTemplate"),
    ],
)
def test_rejection_has_a_reason_and_a_fix(cause: RejectionCause, error: str, reason: str) -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("a", error=error, cause=cause), 1, 0.0, has_run=False)
    waiting = rejected.waiting
    assert waiting is not None
    assert waiting.reason == reason
    assert waiting.message.startswith(f"a: {error}; ")


def test_first_of_several_rejections_is_reported() -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("worker-10", "worker-9"), 1, 0.0, has_run=False)
    assert message(rejected).startswith("worker-9: no; ")


def test_reported_rejection_is_bounded() -> None:
    rejected = RejectedChildren()
    rejected.update(rejection("a", error="x" * 5_000), 1, 0.0, has_run=False)
    assert len(message(rejected)) <= MAX_MESSAGE_CHARS
