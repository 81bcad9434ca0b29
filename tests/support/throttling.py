"""The error with which an overloaded API server turns requests away."""

from dlctl.local.apiserver.status import StatusError


def too_many_requests(message: str, retry_after_s: int) -> StatusError:
    details = {"retryAfterSeconds": retry_after_s} if retry_after_s else None
    return StatusError(429, "TooManyRequests", message, details)
