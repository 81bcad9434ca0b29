"""The reason, message and fix of a job whose child the API server rejects. Pure."""

from typing import Final

from dlctl.api.status.waiting import Waiting
from dlctl.errors import MAX_MESSAGE_CHARS, truncated
from dlctl.reconcilers.children.rejection import Rejection, RejectionCause

_LIMIT_RANGE_FIX: Final = "change the resources or the namespace's LimitRange"
# Parts of the server's messages, the more specific ones first: the code and reason of an answer are
# up to each webhook and plugin.
_BY_TEXT: Final = (
    ("exceeded quota", "QuotaExceeded", "it is tried again until the quota has room"),
    ("failed quota", "QuotaExceeded", "set the resources that the quota counts"),
    ('admission webhook "', "WebhookDenied", "the webhook's owner decides what it accepts"),
    ("failed calling webhook", "WebhookFailed", "the webhook does not answer as it should"),
    ("AdmissionPolicy", "PolicyDenied", "the policy's owner decides what it accepts"),
    ("violates PodSecurity", "PodSecurityDenied", "change the template or the namespace's level"),
    ("no PriorityClass with name", "PriorityClassNotFound", "create it or name another"),
    # With the quote: a user without a right is called system:serviceaccount:...
    ('serviceaccount "', "ServiceAccountNotFound", "create it or name another"),
    ('RuntimeClass "', "RuntimeClassNotFound", "create it or name another"),
    (" usage per ", "LimitRangeDenied", _LIMIT_RANGE_FIX),
    (" limit to request ratio per ", "LimitRangeDenied", _LIMIT_RANGE_FIX),
)
_BY_CAUSE: Final = {
    RejectionCause.ALREADY_EXISTS: ("NameTaken", "delete that object or rename the job"),
    RejectionCause.FORBIDDEN: ("Forbidden", "the rights of dlctl and the admission plugins decide"),
    RejectionCause.DENIED: ("Rejected", "it is tried again"),
    RejectionCause.NOT_SERVED: ("NotServed", "install it"),
    RejectionCause.INVALID: ("InvalidTemplate", "correct the template"),
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
