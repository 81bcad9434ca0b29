"""Whether and when a failed request is retried. Pure: neither sends nor sleeps."""

from typing import Final

from dlctl.backoff import Backoff, jittered
from dlctl.errors import DlctlError
from dlctl.kube.errors import DisconnectedError, ThrottledError

# A server may ask for no pause at all, each time.
MIN_DELAY_S: Final = 0.1
# The longest that priority and fairness asks for. Longer pauses are up to the caller, who may have
# other work to do.
MAX_DELAY_S: Final = 32.0
# After these codes the server certainly did nothing. After other 5xx, or a reset, it may have.
_NOT_PROCESSED: Final = (429, 503)
_JITTER: Final = 0.25
_RECONNECT_BACKOFF: Final = Backoff(base_s=MIN_DELAY_S, cap_s=MAX_DELAY_S, jitter=_JITTER)


def delay_s(method: str, error: DlctlError, attempt: int, random: float) -> float | None:
    """Return the pause in seconds before the next attempt, or None for no retry.

    ``attempt`` counts from 0; ``random`` in [0, 1) stretches the pause by up to a quarter.
    """
    match error:
        case ThrottledError() if error.retry_after_s > MAX_DELAY_S:
            return None
        case ThrottledError() if method == "GET" or error.code in _NOT_PROCESSED:
            return jittered(max(error.retry_after_s, MIN_DELAY_S), _JITTER, random)
        case DisconnectedError() if method == "GET":
            return _RECONNECT_BACKOFF.delay_s(attempt + 1, random)
        case _:
            return None
