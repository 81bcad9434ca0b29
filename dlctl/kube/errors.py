"""Errors: those that an API server returns, and those that keep a request from reaching it.

``Status.reason`` determines the class before the HTTP code does: 409 covers two situations that
need opposite reactions. Transport errors become :class:`UnreachableError`; aiohttp's never leave
this package.
"""

import math
from collections.abc import Mapping
from typing import Final

from dlctl.errors import DlctlError
from dlctl.kube.status import Status, decode_status


class RequestError(DlctlError):
    """A request had no usable response; unless the server refused it, it may have been done."""


class ApiError(RequestError):
    """The server returned an error."""

    def __init__(self, message: str, *, code: int, reason: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class NotFoundError(ApiError):
    """The object or the resource does not exist."""


class AlreadyExistsError(ApiError):
    """The name is taken, perhaps by an earlier attempt of our own."""


class ConflictError(ApiError):
    """The object has changed since it was read, or a precondition on its UID failed."""


class InvalidError(ApiError):
    """The object violates its schema or a validation rule; a retry cannot succeed."""


class ForbiddenError(ApiError):
    """Authorization, quota or admission rejects the request."""


class NamespaceTerminatingError(ForbiddenError):
    """Nothing can be created in a namespace that is being deleted."""


class UnauthorizedError(ApiError):
    """The credentials are missing, wrong or expired."""


class ExpiredError(ApiError):
    """The requested resource version is too old (410): list again."""


class TooLargeVersionError(ApiError):
    """The requested resource version is newer than any that the server has seen."""


class ThrottledError(ApiError):
    """The server asks to retry later: 429, or a 5xx with a Retry-After.

    After 429 and 503 nothing was done; after other codes a write may have been. It is load shedding
    if the server has not looked at the request, as priority and fairness does: it may take others.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str,
        retry_after_s: float,
        is_load_shedding: bool = False,
    ) -> None:
        super().__init__(message, code=code, reason=reason)
        self.retry_after_s = retry_after_s
        self.is_load_shedding = is_load_shedding


class UnreachableError(RequestError):
    """No response: refused, reset, timed out or cut. A write may or may not have been done."""


class ConnectRefusedError(UnreachableError):
    """Nothing is listening there; the request was certainly not processed."""


class WriteFencedError(UnreachableError):
    """A write was not sent, because this process may not write now."""


class DisconnectedError(UnreachableError):
    """The connection broke during the request or its response."""


class DeadlineExceededError(UnreachableError):
    """A command in a container did not end in time; it may still be running."""


class OutputLimitError(DlctlError):
    """A command in a container exceeded its output limit; it may still be running."""


class ResponseTooLargeError(RequestError):
    """The response to a read has more bytes than are kept in memory."""


class UnexpectedResponseError(RequestError):
    """Not the response of an API server: a proxy's page, or an object of another type."""


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

# Delay of the retry if the server gave no number of seconds.
DEFAULT_RETRY_AFTER_S: Final = 1.0
_TOO_LARGE: Final = "Too large resource version"


def error_from(status_code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Return the error that a response, or the object of an ERROR event, stands for.

    ``headers`` must ignore case; an ERROR event has none, and its code is in its body.
    """
    # The text of another server may repeat the request, which does not belong in a log.
    found = decode_status(body)
    status = found or Status()
    code = status_code or status.code or 500
    reason = status.reason or ""
    message = status.message or f"the server responded {code} without a Status"
    if _is_too_large(status):
        return TooLargeVersionError(message, code=code, reason=reason)
    retry_after_s = _retry_after_s(headers, status)
    if code == 429 or reason == "TooManyRequests" or (code >= 500 and retry_after_s is not None):
        return ThrottledError(
            message,
            code=code,
            reason=reason,
            retry_after_s=DEFAULT_RETRY_AFTER_S if retry_after_s is None else retry_after_s,
            is_load_shedding=code == 429 and found is None,
        )
    if any(cause.reason == "NamespaceTerminating" for cause in status.causes):
        return NamespaceTerminatingError(message, code=code, reason=reason)
    kind = ERROR_BY_REASON.get(reason) or ERROR_BY_CODE.get(code, ApiError)
    return kind(message, code=code, reason=reason)


def names_missing_object(message: str, name: str) -> bool:
    """Return whether an error says that the object of this name does not exist.

    Only the message does: the details of a Status name the object of the request, even if another
    one is missing, such as a pod's service account.
    """
    return f'"{name}" not found' in message


def _retry_after_s(headers: Mapping[str, str], status: Status) -> float | None:
    asked: str | float | None = headers.get("Retry-After")
    if asked is None and status.details:
        asked = status.details.retry_after_seconds
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        # A date: only proxies send one, and their clock is not ours.
        return DEFAULT_RETRY_AFTER_S
    return seconds if math.isfinite(seconds) and seconds >= 0 else DEFAULT_RETRY_AFTER_S


def _is_too_large(status: Status) -> bool:
    """Recognize a version from the future, for which servers have had three forms."""
    if any(cause.reason == "ResourceVersionTooLarge" for cause in status.causes):
        return True
    messages = [status.message, *(cause.message for cause in status.causes)]
    return status.reason == "Timeout" and any(_TOO_LARGE in (text or "") for text in messages)
