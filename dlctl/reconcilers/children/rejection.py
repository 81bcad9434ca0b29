"""Children that the API server rejects, and why."""

import enum
from collections.abc import Mapping
from typing import Final

import attrs

from dlctl.api.meta import Resource
from dlctl.errors import InvalidJobError, truncated
from dlctl.kube.errors import (
    ApiError,
    ForbiddenError,
    InvalidError,
    NamespaceTerminatingError,
    NotFoundError,
    ThrottledError,
    names_missing_object,
)
from dlctl.reconcilers.content_errors import ContentError

# Of a ValidatingAdmissionPolicy, and of a MutatingAdmissionPolicy whose patch fails.
POLICY_DENIAL: Final = "' denied request: "
# Messages of admission, which the administrator controls and which may accept the same child later;
# the code and reason are up to each webhook.
_ADMISSION_ERRORS: Final = ('admission webhook "', "failed calling webhook", POLICY_DENIAL)
# Authentication, timeouts, conflicts, throttling: unrelated to the child.
_UNRELATED_CODES: Final = frozenset({401, 408, 409, 410, 429})


class RejectionCause(enum.Enum):
    """Why a child was not created."""

    # Another object has the name.
    ALREADY_EXISTS = enum.auto()
    # Quota or authorization denies it, for now.
    FORBIDDEN = enum.auto()
    # Admission denies it, or the server cannot decode the child.
    DENIED = enum.auto()
    # The server does not serve the resource, or no longer does.
    NOT_SERVED = enum.auto()
    # The same child is never accepted, or it cannot be rendered.
    INVALID = enum.auto()


# Common in every cluster, and resolved without an administrator.
TRANSIENT_CAUSES: Final = frozenset({RejectionCause.ALREADY_EXISTS, RejectionCause.FORBIDDEN})


@attrs.frozen
class Rejection:
    """A child that was not created: the cause and the server's message."""

    cause: RejectionCause
    resource: Resource
    message: str
    server_message: str
    # Set if the child could not be rendered.
    exception: ContentError | InvalidJobError | None = None


_CAUSE_TEXTS: Final[Mapping[RejectionCause, str]] = {
    RejectionCause.FORBIDDEN: "forbidden",
    RejectionCause.DENIED: "rejected",
    RejectionCause.NOT_SERVED: "not served by the API server, its CRD may be missing",
    RejectionCause.INVALID: "invalid",
}


def rejection_of(resource: Resource, name: str, error: ApiError) -> Rejection | None:
    """Return the rejection of a child by a server error; None if the error is not about the child.

    The caller raises other errors.
    """
    if (cause := _cause(error)) is None:
        return None
    if cause is RejectionCause.NOT_SERVED and names_missing_object(str(error), name):
        # The kind is served, so only the object itself is gone, which the store is about to show.
        return None
    text = truncated(str(error))
    message = f"{resource.kind.lower()} {name} is {_CAUSE_TEXTS[cause]}: {text}"
    return Rejection(cause, resource, message, text)


def without_numbers(text: str) -> str:
    """Return a message without request ids, counts and times, which vary between attempts."""
    words = ("#" if any(map(str.isdigit, word)) else word for word in text.split())
    return " ".join(words)


def _cause(error: ApiError) -> RejectionCause | None:
    """Return why a child was rejected; None for an error that is not about the child."""
    text = str(error)
    if isinstance(error, NamespaceTerminatingError | ThrottledError):
        return None
    if isinstance(error, ForbiddenError):
        return RejectionCause.FORBIDDEN
    if any(words in text for words in _ADMISSION_ERRORS):
        return RejectionCause.DENIED
    if isinstance(error, NotFoundError):
        return RejectionCause.NOT_SERVED
    if isinstance(error, InvalidError):
        return RejectionCause.INVALID
    if error.code >= 500:
        # A message of etcd, which the server passes on.
        return RejectionCause.DENIED if "request is too large" in text else None
    return None if error.code in _UNRELATED_CODES else RejectionCause.DENIED
