"""Whether a failed request is sent again, and when. Pure: it neither sends nor sleeps."""

from typing import Final

from dlctl.backoff import Backoff, jittered
from dlctl.errors import DlctlError
from dlctl.kube.errors import DisconnectedError, ThrottledError

MAX_RETRIES: Final = 10
# A server that wants a longer pause than this tells it to the caller, who has other work.
MAX_DELAY_S: Final = 30.0
# After these the server has done nothing. After another 5xx, or a reset, it may have.
_NOT_PROCESSED: Final = (429, 503)
_JITTER: Final = 0.25
_RECONNECT_BACKOFF: Final = Backoff(base_s=0.1, cap_s=MAX_DELAY_S, jitter=_JITTER)


def delay_s(method: str, error: DlctlError, attempt: int, random: float) -> float | None:
    """Return the pause before the next try, or None if there is to be none.

    ``attempt`` counts from 0; ``random`` in [0, 1) stretches the pause by up to a quarter.
    """
    if attempt >= MAX_RETRIES:
        return None
    match error:
        case ThrottledError() if error.retry_after_s > MAX_DELAY_S:
            return None
        case ThrottledError() if method == "GET" or error.code in _NOT_PROCESSED:
            return jittered(error.retry_after_s, _JITTER, random)
        case DisconnectedError() if method == "GET":
            return _RECONNECT_BACKOFF.delay_s(attempt + 1, random)
        case _:
            return None
