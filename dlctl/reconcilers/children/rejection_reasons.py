"""The reason, message and fix of a job whose child the API server rejects. Pure."""

from typing import Final

from dlctl.api.status import waiting_reasons as reasons
from dlctl.api.status.waiting import Waiting
from dlctl.errors import MAX_MESSAGE_CHARS, truncated
from dlctl.reconcilers.children.rejection import POLICY_DENIAL, Rejection, RejectionCause

_LIMIT_RANGE_FIX: Final = "change the resources or the namespace's LimitRange"
# Parts of the server's messages, the more specific ones first: the code and reason of an answer are
# up to each webhook and plugin.
_BY_TEXT: Final = (
    ("exceeded quota", reasons.QUOTA_EXCEEDED, "it is tried again until the quota has room"),
    ("failed quota", reasons.QUOTA_EXCEEDED, "set the resources that the quota counts"),
    ('admission webhook "', reasons.WEBHOOK_DENIED, "the webhook's owner decides what it accepts"),
    ("failed calling webhook", reasons.WEBHOOK_FAILED, "the webhook does not answer as it should"),
    (POLICY_DENIAL, reasons.POLICY_DENIED, "the policy's owner decides what it accepts"),
    (
        "violates PodSecurity",
        reasons.POD_SECURITY_DENIED,
        "change the template or the namespace's level",
    ),
    ("no PriorityClass with name", reasons.PRIORITY_CLASS_NOT_FOUND, "create it or name another"),
    # With the quote: a user without a right is called system:serviceaccount:...
    ('serviceaccount "', reasons.SERVICE_ACCOUNT_NOT_FOUND, "create it or name another"),
    ('RuntimeClass "', reasons.RUNTIME_CLASS_NOT_FOUND, "create it or name another"),
    (" usage per ", reasons.LIMIT_RANGE_DENIED, _LIMIT_RANGE_FIX),
    (" limit to request ratio per ", reasons.LIMIT_RANGE_DENIED, _LIMIT_RANGE_FIX),
)
_BY_CAUSE: Final = {
    RejectionCause.ALREADY_EXISTS: (reasons.NAME_TAKEN, "delete that object or rename the job"),
    RejectionCause.FORBIDDEN: (
        reasons.FORBIDDEN,
        "the rights of dlctl and the admission plugins decide",
    ),
    RejectionCause.DENIED: (reasons.REJECTED, "it is tried again"),
    RejectionCause.NOT_SERVED: (reasons.NOT_SERVED, "install it"),
    RejectionCause.INVALID: (reasons.INVALID_TEMPLATE, "correct the template"),
}


def rejection_waiting(rejection: Rejection) -> Waiting:
    """Return the reason of a rejection, and its message followed by the fix."""
    reason, fix = _BY_CAUSE[rejection.cause]
    if rejection.cause in (RejectionCause.FORBIDDEN, RejectionCause.DENIED):
        text = rejection.server_message
        reason, fix = next(((r, f) for part, r, f in _BY_TEXT if part in text), (reason, fix))
    if rejection.message.endswith("is being deleted"):
        fix = "its name is free once that has ended"
    message = truncated(rejection.message, MAX_MESSAGE_CHARS - len(fix) - 2)
    return Waiting(reason, f"{message}; {fix}")
