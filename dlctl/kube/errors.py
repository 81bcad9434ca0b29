"""What an API server refuses, and what keeps a request from reaching it.

``Status.reason`` decides the class before the HTTP code does, because 409 is two situations that
need opposite reactions. Transport errors become :class:`UnreachableError`: aiohttp's never leave
this package.
"""

import math
from collections.abc import Mapping
from typing import Final

from dlctl.errors import DlctlError
from dlctl.kube.status import Status, decode_status


class ApiError(DlctlError):
    """The server answered, and the answer is no."""

    def __init__(self, message: str, *, code: int, reason: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class NotFoundError(ApiError):
    """There is no such object, or no such resource."""


class AlreadyExistsError(ApiError):
    """The name is taken, perhaps by an earlier try of our own."""


class ConflictError(ApiError):
    """The object has changed since it was read, or a precondition on its UID failed."""


class InvalidError(ApiError):
    """The object breaks its schema or a validation rule; the same body will never be taken."""


class ForbiddenError(ApiError):
    """Authorization, quota or admission says no."""


class NamespaceTerminatingError(ForbiddenError):
    """Nothing can be created any more in a namespace that is being deleted."""


class UnauthorizedError(ApiError):
    """The credentials are missing, wrong or expired."""


class ExpiredError(ApiError):
    """The resource version asked for has left the server's window (410): only a list catches up."""


class TooLargeVersionError(ApiError):
    """The server has not seen the resource version asked for yet."""


class ThrottledError(ApiError):
    """The server asks to come back later: 429, or a 5xx with a Retry-After.

    After 429 and 503 nothing was done; after another code a write may have been.
    """

    def __init__(self, message: str, *, code: int, reason: str, retry_after_s: float) -> None:
        super().__init__(message, code=code, reason=reason)
        self.retry_after_s = retry_after_s


class UnreachableError(DlctlError):
    """No answer: refused, reset, timed out or cut. Whether a write was done is unknown."""


class ConnectRefusedError(UnreachableError):
    """Nothing listens there at the moment; the request was certainly not done."""


class WriteFencedError(UnreachableError):
    """The request would change something, which this process may not do now; it was not sent."""


class DisconnectedError(UnreachableError):
    """The connection broke under the request or its answer."""


class DeadlineExceededError(UnreachableError):
    """A command in a container has not ended in its time; whether it still runs is unknown."""


class OutputLimitError(DlctlError):
    """A command in a container wrote more than it may; whether it still runs is unknown."""


class UnexpectedResponseError(DlctlError):
    """Not what an API server answers: a proxy's page, or an object that is not of its kind."""


ERROR_BY_REASON: Final[Mapping[str, type[ApiError]]] = {
    "NotFound": NotFoundError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Invalid": InvalidError,
    "Forbidden": ForbiddenError,
    "Unauthorized": UnauthorizedError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
}
ERROR_BY_CODE: Final[Mapping[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
}

# Before a server that gave no number of seconds is asked again.
DEFAULT_RETRY_AFTER_S: Final = 1.0
_TOO_LARGE: Final = "Too large resource version"


def error_from(status_code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the error that an answer, or the object of an ERROR event, stands for.

    ``headers`` is taken as a mapping that ignores case; an ERROR event has none, and its code is
    the one in its body.
    """
    # The words of another server may repeat what was sent to it: they are not for a log.
    status = decode_status(body) or Status()
    code = status_code or status.code or 500
    reason = status.reason or ""
    message = status.message or f"the server answered {code} without a Status"
    if _is_too_large(status):
        return TooLargeVersionError(message, code=code, reason=reason)
    retry_after_s = _retry_after_s(headers, status)
    if code == 429 or reason == "TooManyRequests" or (code >= 500 and retry_after_s is not None):
        return ThrottledError(
            message,
            code=code,
            reason=reason,
            retry_after_s=DEFAULT_RETRY_AFTER_S if retry_after_s is None else retry_after_s,
        )
    if any(cause.reason == "NamespaceTerminating" for cause in status.causes):
        return NamespaceTerminatingError(message, code=code, reason=reason)
    kind = ERROR_BY_REASON.get(reason) or ERROR_BY_CODE.get(code, ApiError)
    return kind(message, code=code, reason=reason)


def _retry_after_s(headers: Mapping[str, str], status: Status) -> float | None:
    if (text := headers.get("Retry-After")) is not None:
        try:
            seconds = float(text)
        except ValueError:
            # A date: only proxies send one, and their clock is not ours.
            return DEFAULT_RETRY_AFTER_S
        return seconds if math.isfinite(seconds) and seconds >= 0 else DEFAULT_RETRY_AFTER_S
    return status.details.retry_after_seconds if status.details else None


def _is_too_large(status: Status) -> bool:
    """Recognize a version from the future, for which servers have had three forms."""
    if any(cause.reason == "ResourceVersionTooLarge" for cause in status.causes):
        return True
    messages = [status.message, *(cause.message for cause in status.causes)]
    return status.reason == "Timeout" and any(_TOO_LARGE in (text or "") for text in messages)
