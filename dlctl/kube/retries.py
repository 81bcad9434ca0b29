"""Whether a failed request is sent again, and when. Pure: it neither sends nor sleeps."""

from typing import Final

from dlctl.errors import DlctlError
from dlctl.kube.errors import DisconnectedError, ThrottledError

MAX_RETRIES: Final = 10
# A server that wants a longer pause than this tells it to the caller, who has other work.
MAX_DELAY_S: Final = 30.0
# After these the server has done nothing. After another 5xx, or a reset, it may have.
_NOT_PROCESSED: Final = (429, 503)
_RECONNECT_DELAY_S: Final = 0.1


def delay_s(method: str, error: DlctlError, attempt: int, jitter: float) -> float | None:
    """Return the pause before the next try, or None if there is to be none.

    ``attempt`` counts from 0; ``jitter`` in [0, 1) stretches the pause by up to a quarter, so
    that clients turned away together do not come back together.
    """
    if attempt >= MAX_RETRIES:
        return None
    stretch = 1 + jitter / 4
    match error:
        case ThrottledError() if error.retry_after_s > MAX_DELAY_S:
            return None
        case ThrottledError() if method == "GET" or error.code in _NOT_PROCESSED:
            return error.retry_after_s * stretch
        case DisconnectedError() if method == "GET":
            return min(_RECONNECT_DELAY_S * 2.0**attempt, MAX_DELAY_S) * stretch
        case _:
            return None
