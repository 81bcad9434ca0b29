"""What an API server refuses, and what keeps a request from reaching it.

``Status.reason`` decides the class before the HTTP code does, because 409 is two situations that
need opposite reactions. Transport errors become :class:`UnreachableError`: aiohttp's never leave
this package.
"""

from collections.abc import Mapping
from typing import Final

from dlctl.errors import DlctlError


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


class UnauthorizedError(ApiError):
    """The credentials are missing, wrong or expired."""


class ExpiredError(ApiError):
    """The resource version asked for has left the server's window (410): only a list catches up."""


class TooLargeVersionError(ApiError):
    """The server has not seen the resource version asked for yet."""


class ThrottledError(ApiError):
    """The server asks to come back later: 429, or 503 with a Retry-After."""

    def __init__(self, message: str, *, code: int, reason: str, retry_after_s: float) -> None:
        super().__init__(message, code=code, reason=reason)
        self.retry_after_s = retry_after_s


class UnreachableError(DlctlError):
    """No answer: refused, reset, timed out or cut. Whether a write was done is unknown."""


BY_REASON: Final[Mapping[str, type[ApiError]]] = {
    "NotFound": NotFoundError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Invalid": InvalidError,
    "Forbidden": ForbiddenError,
    "Unauthorized": UnauthorizedError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
}
BY_CODE: Final[Mapping[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
}
